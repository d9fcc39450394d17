"""What sizing a fleet by dollars is worth, in virtual time, beside rivals and a clairvoyant plan.

`make bench-fleet` plays recorded rates (their second half is counted, the first is to learn from),
drawn days and shocks, with an API from 0.3 to 10 times break-even, starts of 30 s to 15 min, and
rent by the second and by the hour. Whoever decides sees ten minutes, one minute or ten seconds.
`ARGS="--traces FOLDER"` says where the recorded rates lie, `--quick` plays ten minutes alone.
`--limits` takes abilities from the clairvoyant, one at a time, and says where our plan loses. Cells
that the same sources played before are read from `build/fleet-bench.jsonl`, not played again.
"""

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from fleetcells import SECOND, Cell, planned, play_cells
from fleetlimits import limits, losses
from fleetseries import FOLDER, SHAPES, recorded

RESULTS = Path(__file__).parents[2] / "build" / "fleet-bench.json"
STEPS = {600: "10 min", 60: "1 min", 10: "10 s"}


def _line(item: Cell) -> str:
    name, tuned = item.tuned
    share = f"{item.closed:6.3f} ({item.dollar_closed:6.3f})" if item.differs else " " * 15
    return (
        f"{STEPS[item.step_s]:>6} {item.kind:8} {item.series:12} {item.price:5.2f} x "
        f"{item.start_s:4.0f} s {'hour' if item.unit_s > 1 else 'second':6} "
        f"gap {share} over {item.over:6.3f} dollar {item.dollar / item.best:6.3f} "
        f"best rule {tuned / item.best:6.3f} {name:17} starts {item.starts}/{item.best_starts} "
        f"{item.cpu_ms:5.2f} ms (slowest {item.slowest_ms:.0f})"
    )


def report(found: list[Cell]) -> None:
    second = [item for item in found if item.unit_s == 1]
    print("\nfigure                                          must             measured")
    for step_s, must in ((600, "mean .74 least .40"), (60, "mean .80"), (10, "")):
        for kind in ("whole", "recorded"):
            rows = [item for item in second
                    if item.step_s == step_s and item.kind == kind and item.differs]  # fmt: skip
            if rows:
                print(
                    f"gap closed, {STEPS[step_s]:6} {kind:9} {len(rows):3} cells     {must:19} "
                    f"mean {fmean(row.closed for row in rows):.3f} "
                    f"least {min(row.closed for row in rows):.3f} "
                    f"(dollar rule {fmean(row.dollar_closed for row in rows):.3f})"
                )
    for step_s in STEPS:
        _totals([item for item in second if item.step_s == step_s], step_s)
    _rest(found)


def _totals(rows: list[Cell], step_s: int) -> None:
    modest = [row for row in rows if row.kind == "recorded" and 1 < row.price <= 3]
    if modest:
        worse = max(row.over - row.dollar / row.best for row in modest)
        print(
            f"over clairvoyant, {STEPS[step_s]:6} to 3 x {len(modest):3} cells  "
            f"mean 1.07 most 1.15  mean {fmean(row.over for row in modest):.3f} "
            f"most {max(row.over for row in modest):.3f}, "
            f"above the dollar rule by at most {worse:+.3f} (must .005)"
        )
    for name, chosen in (
        ("shocks", [row for row in rows if row.kind == "shock"]),
        ("above 3 x", [row for row in rows if row.kind == "recorded" and row.price > 3]),
    ):
        if chosen:
            ratios = [row.ours / row.tuned[1] for row in chosen]
            print(
                f"{name}, to the best rule in hindsight, {STEPS[step_s]:6} {len(ratios):2} cells"
                f"  1.0  mean {fmean(ratios):.3f} most {max(ratios):.3f}"
            )
    starts = [row for row in rows if row.best_starts >= 10]
    if starts:
        ratio = sum(row.starts for row in starts) / sum(row.best_starts for row in starts)
        most = max(row.starts / row.best_starts for row in starts)
        print(
            f"starts to the clairvoyant's, {STEPS[step_s]:6}      1.1  all {ratio:.2f}, "
            f"most of a cell {most:.2f}"
        )


def _rest(found: list[Cell]) -> None:
    hourly = [row for row in found if row.unit_s > 1]
    if hourly:
        ratios = [row.ours / row.tuned[1] for row in hourly]
        print(
            f"rent by the hour, to the best rule in hindsight {len(ratios)} cells  "
            f"mean {fmean(ratios):.3f} most {max(ratios):.3f}"
        )
    cheap = [row for row in found if row.price < 1 and row.kind == "recorded"]
    if cheap:
        print(f"engines started below break-even  0  {sum(row.starts for row in cheap)}")
    print(f"CPU of a plan, slowest: {max(row.slowest_ms for row in found):.0f} ms of 50")


def _limits(folder: Path) -> None:
    """Shares of the gap: what knows more than anybody closes, and where our plan loses."""
    for whole in (True, False):
        for name in SHAPES:
            series = recorded(name, 600, whole=whole, folder=folder)
            head = f"{'whole' if whole else 'second half':11} {name:12}"
            closed = limits(series, SECOND)
            words = (f"{each} {share:.3f}" for each, share in closed.items())
            print(f"{head} closed: {', '.join(words)}", flush=True)
            lost = losses(series, SECOND).most_common()
            print(f"{head} lost: {', '.join(f'{kind} {part:.3f}' for kind, part in lost)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, default=FOLDER, help="folder of recorded rates")
    parser.add_argument("--quick", action="store_true", help="ten-minute information alone")
    parser.add_argument(
        "--steps", type=int, nargs="+", default=list(STEPS), help="its age: 600 60 10"
    )
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="cells played at a time"
    )
    parser.add_argument(
        "--limits", action="store_true", help="what ten minutes' information can close at most"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    if not (chosen.traces / "servegen_m-small_rate10min.csv.gz").exists():
        print("NO RECORDED RATES: drawn stand-ins, whose figures compare with nothing")
    if chosen.limits:
        _limits(chosen.traces)
        return
    plans = list(planned((600,) if chosen.quick else tuple(chosen.steps)))
    cells = {}
    for plan, cell in play_cells(
        plans, chosen.traces, chosen.out.with_suffix(".jsonl"), chosen.processes
    ):
        cells[plan] = cell
        print(_line(cell), flush=True)
    found = [cells[plan] for plan in plans]
    report(found)
    chosen.out.write_text(json.dumps([asdict(item) for item in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
