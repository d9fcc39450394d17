"""What sizing a fleet by dollars is worth, in virtual time, beside rivals and a clairvoyant plan.

`make bench-fleet` plays recorded rates (their second half is counted, the first is to learn from),
drawn days and shocks, with an API from 0.3 to 10 times break-even, starts of 30 s to 15 min, and
rent by the second and by the hour. Whoever decides sees ten minutes, one minute or ten seconds.
`ARGS="--traces FOLDER"` says where the recorded rates lie, `--quick` plays ten minutes alone.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from fleetplay import Bill, RentRule, clairvoyant, fixed, play
from fleetrules import PlannerRule, rivals
from fleetseries import FOLDER, SHAPES, Series, recorded, shocks

RESULTS = Path(__file__).parents[2] / "build" / "fleet-bench.json"
STARTS_S = (30.0, 180.0, 900.0)
MODEST = (1.3, 2.0, 3.0)  # prices up to three times break-even
DEAR = (5.0, 10.0)
CHEAP = (0.3, 0.5, 0.8)
HOURLY = RentRule(180.0, 3600, 3600)
DIFFER = 1.05  # fixed to clairvoyant, from which the gap between them is judged
STEPS = {600: "10 min", 60: "1 min", 10: "10 s"}


@dataclass(frozen=True)
class Cell:
    """One series at one price with one billing, and what each way of sizing spent."""

    kind: str
    series: str
    step_s: int
    price: float
    start_s: float
    unit_s: int
    best: float
    fixed: float
    ours: float
    dollar: float
    rivals: dict[str, float]
    starts: int
    best_starts: int
    cpu_ms: float
    slowest_ms: float

    @property
    def closed(self) -> float:
        """The share of the gap between the best fixed number and the clairvoyant's."""
        return self._closed(self.ours)

    @property
    def dollar_closed(self) -> float:
        return self._closed(self.dollar)

    @property
    def over(self) -> float:
        return self.ours / self.best

    @property
    def tuned(self) -> tuple[str, float]:
        """The best online rule in hindsight."""
        name = min(self.rivals, key=lambda name: self.rivals[name])
        return name, self.rivals[name]

    @property
    def differs(self) -> bool:
        return self.fixed > DIFFER * self.best

    def _closed(self, total: float) -> float:
        return (self.fixed - total) / (self.fixed - self.best)


def cell(kind: str, series: Series, billing: RentRule) -> Cell:
    """Play one. At fine steps only what is compared with a tuned rule plays all rivals."""
    planner = PlannerRule(series, billing)
    best, ours = clairvoyant(series, billing), play(series, billing, planner)
    everyone = series.step_s >= 600 or kind == "shock" or series.prices.max() > max(MODEST)
    others = {
        name: play(series, billing, rule)
        for name, rule in rivals(series, billing).items()
        if everyone or name in {"dollar rule", "lazy provisioning"}
    }
    found = Cell(
        kind, series.name, series.step_s, float(series.prices.mean()), billing.start_s,
        billing.unit_s, _daily(best, series), _daily(fixed(series)[0], series),
        _daily(ours, series), _daily(others["dollar rule"], series),
        {name: _daily(bill, series) for name, bill in others.items()}, ours.starts, best.starts,
        planner.cpu_s / len(series.rates) * 1e3, planner.slowest_s * 1e3,
    )  # fmt: skip
    print(_line(found), flush=True)
    return found


def _daily(bill: Bill, series: Series) -> float:
    return bill.total / series.days


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


def cells(folder: Path, steps: tuple[int, ...]) -> Iterator[Cell]:
    for step_s in steps:
        for name in SHAPES:
            yield cell("whole", recorded(name, step_s, whole=True, folder=folder), RentRule())
            half = recorded(name, step_s, folder=folder)
            yield cell("recorded", half, RentRule())
            if step_s < 60:
                continue
            for start_s in STARTS_S:
                if start_s != RentRule().start_s:
                    yield cell("recorded", half, RentRule(start_s))
            for price in (*CHEAP, *MODEST, *DEAR) if step_s >= 600 else (0.5, 1.3, 3.0, 10.0):
                yield cell("recorded", half.priced(price), RentRule())
            for price in (2.0, 10.0) if step_s >= 600 else (2.0,):
                yield cell("recorded", half.priced(price), HOURLY)
        if step_s >= 60:
            for series in shocks(step_s, folder=folder):
                yield cell("shock", series, RentRule())


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, default=FOLDER, help="folder of recorded rates")
    parser.add_argument("--quick", action="store_true", help="ten-minute information alone")
    parser.add_argument(
        "--steps", type=int, nargs="+", default=list(STEPS), help="its age: 600 60 10"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    if not (chosen.traces / "servegen_m-small_rate10min.csv.gz").exists():
        print("NO RECORDED RATES: drawn stand-ins, whose figures compare with nothing")
    found = list(cells(chosen.traces, (600,) if chosen.quick else tuple(chosen.steps)))
    report(found)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps([asdict(item) for item in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
