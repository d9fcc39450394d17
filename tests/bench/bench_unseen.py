"""The same policy on traffic that no recorded trace has, and that nothing was tuned on.

What is drawn stands in `drawn.py`. Everything else is `bench_routing`'s: capacity by Poisson
arrivals of the same lengths, its bound, greedy and the thresholds swept in hindsight. Engines'
steps are as short as the promised time per token asks, as `serve` starts them: with vLLM's own
2,048 tokens a step no policy keeps it in bursts. `as set` are engines that nobody may restart.

`shared beginnings` (`prefixed.py`) are long prompts on four engines with prefix caches, where what
counts is what is found there, beside vLLM's and SGLang's `cache_aware`.

    make bench-unseen                    # each kind at its loads, five seeds
    make bench-unseen ARGS="--seeds 1 --kinds bursts"
    make bench-unseen ARGS="--seeds 1 --kinds 'short bursty' --errors 'skew 50 ms'"
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from api_price import ApiPrice  # noqa: E402  (after the checkout's packages)
from bench_routing import (  # noqa: E402  (as above)
    BOUND,
    BUILD,
    Task,
    bound_of,
    capacity_rps,
    figures_of,
)
from cells import CHEAP, H100, MINI, SLO, Cell  # noqa: E402  (as above)
from drawn import KINDS as DRAWN  # noqa: E402  (as above)
from drawn import Drawn  # noqa: E402  (as above)
from feasible import Search  # noqa: E402  (as above)
from intervals import interval_of  # noqa: E402  (as above)
from peers import install  # noqa: E402  (as above)
from prefixed import judge_prefixes  # noqa: E402  (as above)
from traces import Load, Traces  # noqa: E402  (as above)
from trial import ERRORS, SWEPT  # noqa: E402  (as above)

from backends.simulator.shape import EngineShape  # noqa: E402  (as above)
from gateway.config.step_promises import PolicyPromise, PoolSteps, kept_budget  # noqa: E402  (as above)
from router.types import Slo  # noqa: E402  (as above)

SECONDS, MOST = 300.0, 6_000
KEPT, TO_GREEDY, TO_SKEW = (
    0.99,
    0.98,
    0.98,
)  # of own answers; of greedy's score; of ours with errors
_PROMISE = PolicyPromise("bench", SLO.tpot_ms or 0.0)
_BUDGET = kept_budget(PoolSteps.of(H100), [_PROMISE])
assert _BUDGET is not None
STARTED = replace(H100, prefill_budget_tokens=_BUDGET)  # as `serve` starts it under this promise
ONE, TWO = {"a": MINI}, {"a": MINI, "b": CHEAP}
# A fifth of the requests compare with a dear API, as tenants of one engine do.
SHARES = {1: (("a", 1.0),), 2: (("a", 0.2), ("b", 0.8))}


@dataclass(frozen=True)
class Kind:
    """What is drawn, for which engine and promise; `musts` are shares of the bound by load."""

    drawn: str
    prices: dict[str, ApiPrice] = field(default_factory=lambda: TWO)
    shape: EngineShape = STARTED
    slo: Slo = SLO
    capacity_rps: float | None = None  # `None`: measured first
    seconds: float = SECONDS
    musts: dict[float, float] = field(default_factory=lambda: {1.0: 0.0, 2.0: 0.0})


SHORT = {1.0: 0.93, 2.0: 0.92, 4.0: 0.89}
KINDS = {
    **{name: Kind(name) for name in ("diurnal", "heavy tails", "bursts", "sessions")},
    "short bursty": Kind("short bursty", ONE, capacity_rps=9.0, musts=SHORT),
    "short bursty, as set": Kind("short bursty", ONE, H100, capacity_rps=9.0, musts=SHORT),
    "short bursty, two": Kind(
        "short bursty", TWO, capacity_rps=9.0, musts=dict.fromkeys(SHORT, 0.88)
    ),
    "long prompts": Kind(
        "long prompts", ONE, slo=replace(SLO, ttft_ms=5000.0), capacity_rps=0.58, seconds=3000.0,
        musts={1.0: 0.82, 2.0: 0.0, 4.0: 0.0},
    ),
}  # fmt: skip
PREFIXES, PREFIX_TIMES = "shared beginnings", (0.7, 1.0)
assert {kind.drawn for kind in KINDS.values()} == set(DRAWN)


@dataclass(frozen=True)
class JudgedFigures:
    """Least of the seeds; shares of the bound. `interval`: of sums over the seeds, 95 %."""

    cell: str
    score: float
    interval: tuple[float, float, float]
    greedy: float
    signals: dict[str, tuple[float, float]]  # best limit of each that keeps promises; its share
    clairvoyant: float  # of a plan that the engines can play; 0: not searched
    own_kept: float
    all_kept: float
    errors: dict[str, float]  # of our own score without the error
    ok: bool


def cell_of(name: str, times: float, capacity: float) -> Cell:
    kind = KINDS[name]
    load = Load(((kind.drawn, SHARES[len(kind.prices)]),), times * capacity, kind.seconds, MOST)
    return Cell(
        f"{name} {times:g}x", "mix", times, load, kind.prices, kind.shape, 1, 1.0, kind.slo
    )  # fmt: skip


@dataclass(frozen=True)
class Judge:
    seeds: int
    errors: tuple[str, ...]
    thresholds: bool
    rounds: int  # of the search for a plan
    traces: Traces
    python: Path

    def figures(self, cell: Cell, must: float) -> JudgedFigures:
        found: list[dict[str, dict[str, Any]]] = []
        swept = tuple(SWEPT) if self.thresholds else ()
        for seed in range(self.seeds):
            whats = (BOUND, "ours", "greedy", *self.errors, *(swept if seed == 0 else ()))
            found.append(
                {
                    what: figures_of(Task(cell, seed, what), self.traces, self.python)
                    for what in whats
                }
            )
            print(f"  {cell.name}, seed {seed}", file=sys.stderr, flush=True)
        ours, greedy = (min(_score(each, what) for each in found) for what in ("ours", "greedy"))
        to_greedy = min(
            _score(each, "ours") / max(1e-9, each["greedy"]["avoided_usd"] / each[BOUND]["dollars"])
            for each in found
        )
        most = max(_score(each, "ours") for each in found)
        errors = {
            what: min(_score(each, what) / max(1e-9, _score(each, "ours")) for each in found)
            for what in self.errors
        }
        dollars = [each[BOUND]["dollars"] for each in found]
        pairs = [
            (_score(each, "ours") * most, most) for each, most in zip(found, dollars, strict=True)
        ]
        return JudgedFigures(
            cell.name, ours, interval_of(pairs), greedy,
            self._signals(found[0], swept),
            self._clairvoyant(cell) if self.rounds else 0.0,
            min(each["ours"]["own_kept"] for each in found),
            min(each["ours"]["all_kept"] for each in found),
            errors,
            ok=ours >= max(must, 1e-9) and to_greedy >= TO_GREEDY and most <= 1.0
            and min(errors.values(), default=1.0) >= TO_SKEW,
        )  # fmt: skip

    @staticmethod
    def _signals(
        first: dict[str, dict[str, Any]], swept: tuple[str, ...]
    ) -> dict[str, tuple[float, float]]:
        best = {SWEPT[what]: first[what]["best"] for what in swept}
        dollars = first[BOUND]["dollars"]
        return {
            name: (point["limit"], point["avoided_usd"] / dollars)
            for name, point in best.items()
            if point is not None
        }

    def _clairvoyant(self, cell: Cell) -> float:
        """Of the first seed's bound, by the same engines step by step: no ceiling, but reached."""
        arrivals = self.traces.arrivals(cell.load, 0)
        bound = bound_of(cell, arrivals, self.python)
        plan = {index: 0.0 for index, share in enumerate(bound["shares"]) if share >= 0.5}
        dollars: float = bound["dollars"]
        return Search(cell, arrivals, 0, plan).run(self.rounds) / dollars


def _score(entry: dict[str, dict[str, Any]], what: str) -> float:
    """Of the bound; nothing where own answers keep too little of their promises."""
    trial = entry[what]
    return trial["avoided_usd"] / entry[BOUND]["dollars"] if trial["own_kept"] >= KEPT else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--kinds", nargs="*", default=[*KINDS, PREFIXES], choices=[*KINDS, PREFIXES]
    )
    parser.add_argument("--times", type=float, nargs="*", help="only these loads")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--errors", nargs="*", default=[], choices=list(ERRORS))
    parser.add_argument("--no-thresholds", action="store_true", help="others are not swept")
    parser.add_argument(
        "--clairvoyant", type=int, default=0, metavar="ROUNDS",
        help="search so long for a clairvoyant's plan that the engines can play (80: minutes)",
    )  # fmt: skip
    given = parser.parse_args()
    python, traces, found = install("highs", BUILD / "peers"), Drawn(), []
    judge = Judge(
        given.seeds, tuple(given.errors), not given.no_thresholds, given.clairvoyant, traces,
        python,
    )  # fmt: skip
    names = (
        f"{'1x, rps':<8} {'of the bound':<13} {'all seeds':<23} {'greedy':<7} "
        f"{'best threshold':<15} {'own kept':<9}"
    )
    print(f"{'':<25} {names} all kept")
    for name in given.kinds:
        if name == PREFIXES:
            continue
        kind = KINDS[name]
        capacity = kind.capacity_rps or capacity_rps(cell_of(name, 1.0, 1.0), traces)
        for times, must in kind.musts.items():
            if given.times and times not in given.times:
                continue
            row = judge.figures(cell_of(name, times, capacity), must)
            found.append({**asdict(row), "capacity_rps": capacity, "must": must})
            print(
                f"{row.cell:<25} {capacity:<8.2f} {row.score:<13.3f} "
                f"{'{:.3f} ({:.3f} to {:.3f})'.format(*row.interval):<23} {row.greedy:<7.3f} "
                f"{max((share for _, share in row.signals.values()), default=0.0):<15.3f} "
                f"{row.own_kept:<9.4f} {row.all_kept:.3f}"
                + "".join(f"  {what} {ratio:.3f}" for what, ratio in row.errors.items())
                + (f"  clairvoyant's plan {row.clairvoyant:.3f}" if row.clairvoyant else "")
                + ("" if row.ok else "  SHORT"),
                flush=True,
            )
            for signal, (limit, share) in row.signals.items():
                print(f"  {signal} below {limit:.4g}: {share:.3f}, ours {row.score / share:.2f} x")
    is_ok = all(figures["ok"] for figures in found)
    if PREFIXES in given.kinds:
        rows, found_enough = judge_prefixes(given.times or PREFIX_TIMES, given.seeds)
        found, is_ok = [*found, *rows], is_ok and found_enough
    (BUILD / "bench-unseen.json").write_text(json.dumps(found, indent=1) + "\n")
    return 0 if is_ok else 1


if __name__ == "__main__":
    raise SystemExit(main())
