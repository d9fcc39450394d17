"""Coding agents' sessions through one own pool and two APIs, in dollars, beside a clairvoyant.

`ours` is the product's own what-if: the candidates, caches and decisions that serve. `blind` is the
same without what it knows of prompt caches. All bills are what the APIs would charge by their
caches' published rules. The clairvoyant knows all sessions to their ends (`agentic_bound.py`); its
schedules, each with less of the engines' time, are played on the same engines: to the letter, and
with an API for whoever an engine would keep waiting. The cheapest that keeps the promises counts.
Dollars are compared in sums over the seeds: one seed may leave nearly nothing to pay.

    make bench-agentic                         # 1x, 2x and 4x of what the pool holds, five seeds
    make bench-agentic ARGS="--seeds 1 --times 2 --minutes 20"
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agentic import sessions_of  # noqa: E402  (after the checkout's packages)
from agentic_bound import Program  # noqa: E402  (as above)
from bench_routing import BUILD  # noqa: E402  (as above)
from cells import H100  # noqa: E402  (as above)
from intervals import interval_of, ratio_of  # noqa: E402  (as above)
from peers import install  # noqa: E402  (as above)

from gateway.config.settings import ModelSection, Settings, parse  # noqa: E402  (as above)
from gateway.fleet.candidates import CandidateBuilder  # noqa: E402  (as above)
from gateway.policies.policy_match import PolicyTerms  # noqa: E402  (as above)
from gateway.whatif.apis import draw_latencies  # noqa: E402  (as above)
from gateway.whatif.policy_replay import PolicyReplay  # noqa: E402  (as above)
from gateway.whatif.replay import Replay, ReplayOutcome  # noqa: E402  (as above)
from gateway.whatif.replay_fleet import EngineModelSource, ReplayFleet  # noqa: E402  (as above)
from gateway.whatif.report import AllApiBill, result  # noqa: E402  (as above)
from gateway.whatif.traffic import Arrival  # noqa: E402  (as above)
from ledger.prices.book import Price, PriceBook, PriceTerms  # noqa: E402  (as above)
from ledger.prices.modellimits import model_limits  # noqa: E402  (as above)
from ledger.prices.quotes import cache_rule  # noqa: E402  (as above)
from ledger.prices.rates import rates_from  # noqa: E402  (as above)
from router.reasons import Reason  # noqa: E402  (as above)
from router.types import Preference, RoutingRequest  # noqa: E402  (as above)

CONFIG = """
models:
  code: {targets: [pool:own, openai/warm, anthropic/claude-cold], compare_with: [openai/warm]}
pools:
  own:
    engine: {kind: simulated, model: h100-llama-3.1-8b-fp8, replicas: %d}
    gpu: {type: H100, usd_per_hour: 3}
providers: {openai: {api_key_env: X}, anthropic: {kind: litellm, api_key_env: X}}
policies: [{name: agents, slo: {ttft_ms: 5000, tpot_ms: 50, attainment: 0.99}, otherwise: %s}]
"""
ENGINES, CONCURRENT = 2, 12  # sessions at a time that the pool serves alone
# Dollars per million tokens: cheap where a prompt is known, and cheap where it is not.
RATES = {
    "openai/warm": {"input": 1_250_000, "cached": 125_000, "output": 10_000_000},
    "anthropic/claude-cold": {
        "input": 1_000_000, "cached": 300_000, "cache_write": 1_250_000, "output": 8_000_000,
    },
}  # fmt: skip
KINDS = "input", "cached", "cache_write", "output"
MUST, TO_BLIND, FORECAST, KEPT = 1.05, 0.7, 0.1, 0.99
VARIANTS = ("ours", "blind")
SHARES = (1.0, 0.8, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25)  # of engines' seconds
NOWHERE: dict[Arrival, str] = {}
OWN = "pool:"


@dataclass(frozen=True)
class AgenticFigures:
    """Dollars at APIs; shares of own answers in time and of prompts' tokens found in caches."""

    dollars: float
    expected: float  # of what was billed
    own_share: float
    own_kept: float
    cached_own: float
    cached_api: float


class PrescribedReplay(PolicyReplay):
    """Sends every turn where it was told to; which engine it is, the load and caches say.

    Unless it is `strict`, whoever is told to run on an engine is only preferred there.
    """

    def __init__(
        self,
        house: ReplayFleet,
        rules: Settings,
        seconds: float,
        told: Mapping[Arrival, str],
        *,
        strict: bool = True,
    ) -> None:
        super().__init__(house, rules, seconds)
        self._told, self._strict = told, strict

    def _request(
        self, arrival: Arrival, name: str, model: ModelSection, terms: PolicyTerms
    ) -> RoutingRequest:
        told, asked = self._told[arrival], super()._request(arrival, name, model, terms)
        names = [target.name for target in self._route(arrival.model)[2][0]]
        if told == OWN and not self._strict:
            own = frozenset(name for name in names if name.startswith(told))
            return replace(asked, preferred=Preference(own, Reason.WEIGHT))
        reason = Reason.DISABLED, "told otherwise"
        barred = {name: reason for name in names if not name.startswith(told)}
        return replace(asked, barred=barred)


class BlindReplay(PolicyReplay):
    """Decides without what is known of any prompt cache; what APIs charge stays the same."""

    def __init__(self, house: ReplayFleet, rules: Settings, seconds: float) -> None:
        super().__init__(house, rules, seconds)
        self._candidates = CandidateBuilder(
            self._views, house.prices, stale_s=1.0, limits=model_limits()
        )


def house_of(*, best_effort: bool = False) -> tuple[ReplayFleet, Settings]:
    otherwise = "best_effort" if best_effort else "reject"
    settings = parse(CONFIG % (ENGINES, otherwise), name="bench")
    book = PriceBook(
        [
            Price(number, name, "bench", 0, PriceTerms(rates_from(rates)))
            for number, (name, rates) in enumerate(RATES.items(), 1)
        ]
    )
    shape = replace(H100, context_tokens=200_000)
    source = EngineModelSource(shape, "bench")
    return ReplayFleet(settings, book, {"own": source}, {}, 10**15), settings


def play(
    variant: str,
    arrivals: Sequence[Arrival],
    seed: int,
    told: Mapping[Arrival, str] = NOWHERE,
    *,
    strict: bool = True,
) -> AgenticFigures:
    house, settings = house_of(best_effort=bool(told) and strict)
    if told:
        planned: PolicyReplay = PrescribedReplay(
            house, settings, arrivals[-1].at_s, told, strict=strict
        )
    else:
        kind = BlindReplay if variant == "blind" else PolicyReplay
        planned = kind(house, settings, arrivals[-1].at_s)
    apis = {
        name: draw_latencies(len(arrivals), source.latency, seed)
        for name, source in house.seen.items()
    }
    outcomes = Replay(planned.seats, {}, arrivals, (), apis=apis).run(planned)
    found = result(variant, house, planned, outcomes, AllApiBill(house, arrivals))
    return _figures(found, outcomes)


def _figures(found: dict[str, Any], outcomes: Sequence[ReplayOutcome]) -> AgenticFigures:
    dollars, sums = found["dollars"], defaultdict(lambda: [0, 0])
    for row in found["targets"]:
        entry = sums[row["target"].startswith("pool:")]
        entry[0] += row["cached"]
        entry[1] += row["input"]
    own = sum(outcome.engine is not None for outcome in outcomes)
    return AgenticFigures(
        dollars["api_usd"], dollars["api_expected_usd"] / max(1e-9, dollars["api_usd"]),
        own / len(outcomes), found["classes"][0]["attainment_own"] or 0.0,
        *(sums[is_own][0] / max(1, sums[is_own][1]) for is_own in (True, False)),
    )  # fmt: skip


def program_of(arrivals: Sequence[Arrival]) -> Program:
    """Return what the clairvoyant knows."""
    house, _ = house_of()
    apis = []
    for price in house.prices.prices_in_force(0):
        rates, rule = RATES[price.name], cache_rule(price)
        assert rule is not None
        apis.append(
            (
                *(rates.get(kind, 0) / 1e12 for kind in KINDS),
                rule.ttl_s, rule.least_tokens, rule.step_tokens,
            )
        )  # fmt: skip
    step = H100.step
    turns = [
        [(turn.at_s, turn.prompt_tokens, turn.output_tokens) for turn in session]
        for session in _by_session(arrivals)
    ]
    return Program(
        turns, apis, (step.a_s, step.b_s, step.c_s, step.d_s), ENGINES, H100.kv_capacity_tokens,
        H100.prefill_budget_tokens, 20.0,
    )  # fmt: skip


def _by_session(arrivals: Sequence[Arrival]) -> list[list[Arrival]]:
    sessions: dict[str, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        sessions[arrival.session].append(arrival)
    return list(sessions.values())


@dataclass(frozen=True)
class Best:
    """The bound in dollars, and what the cheapest schedule costs that keeps the promises."""

    bound: float
    figures: AgenticFigures
    time_share: float
    strict: bool
    columns: int
    seconds: float


def clairvoyant(arrivals: Sequence[Arrival], seed: int, python: Path) -> Best:
    """Play the program's schedules, until one costs more as it is than the best did played."""
    bound, best = 0.0, None
    for share in SHARES:
        found, told = _schedule(arrivals, share, python)
        if share == 1.0:
            bound = found["dollars"]
        if best is not None and found["dollars"] >= best.figures.dollars:
            break
        for strict in (True, False):
            figures = play("clairv.", arrivals, seed, told, strict=strict)
            way = "to the letter" if strict else "preferred"
            print(f"  {share:g} of the engines, {way}: {figures}", file=sys.stderr, flush=True)
            if figures.own_kept < KEPT or (best and figures.dollars >= best.figures.dollars):
                continue
            best = Best(bound, figures, share, strict, found["columns"], found["seconds"])
    assert best is not None, "a quarter of the engines' time is kept"
    return best


def _schedule(
    arrivals: Sequence[Arrival], share: float, python: Path
) -> tuple[dict[str, Any], dict[Arrival, str]]:
    """Return what the program answers, and each turn's target."""
    given = json.dumps(asdict(replace(program_of(arrivals), time_share=share)))
    script = str(Path(__file__).with_name("agentic_bound.py"))
    answer = subprocess.run(
        [str(python), script], input=given, stdout=subprocess.PIPE, text=True, check=True
    )
    found, names = json.loads(answer.stdout), (*RATES, OWN)
    sessions = zip(_by_session(arrivals), found["targets"], strict=True)
    return found, {
        turn: names[target]
        for session, targets in sessions
        for turn, target in zip(session, targets, strict=True)
    }


def _print_row(times: float, seed: int, policy: str, figures: AgenticFigures, ratio: float) -> None:
    print(
        f"{times:<6g} {seed:<5} {policy:<8} {figures.dollars:<9.3f} {ratio:<15.3f} "
        f"{figures.expected:<9.3f} {figures.own_share:<10.3f} {figures.own_kept:<9.4f} "
        f"{figures.cached_own:<11.3f} {figures.cached_api:.3f}",
        flush=True,
    )


def _told(times: float, paid: Mapping[str, Sequence[tuple[float, float]]]) -> bool:
    """Print what a load came to; returns whether it falls short."""
    against, low, high = interval_of(paid["ours"])
    line = f"{times:g}x: {against:.3f} ({low:.3f} to {high:.3f}) of the clairvoyant's (must {MUST})"
    short = against > MUST
    if blind := paid.get("blind"):
        ours = [mine for mine, _ in paid["ours"]]
        against, low, high = interval_of([*zip(ours, [theirs for theirs, _ in blind], strict=True)])
        short |= against > TO_BLIND
        line += f", {against:.3f} ({low:.3f} to {high:.3f}) of what it pays blind (must {TO_BLIND})"
    print(line, flush=True)
    return short


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=float, nargs="*", default=[1.0, 2.0, 4.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=60.0, help="of traffic")
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=VARIANTS)
    given = parser.parse_args()
    python, found, failed = install("highs", BUILD / "peers"), [], False
    print(f"{'load':<6} {'seed':<5} {'policy':<8} {'USD':<9} {'to clairvoyant':<15} "
          f"{'expected':<9} {'own share':<10} {'own kept':<9} {'cached own':<11} cached API",
          flush=True)  # fmt: skip
    for times in given.times:
        paid: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for seed in range(given.seeds):
            arrivals = sessions_of(times * CONCURRENT, 60.0 * given.minutes, seed)
            best = clairvoyant(arrivals, seed, python)
            print(f"{times:g}x, seed {seed}: {len(arrivals)} turns; bound ${best.bound:.3f}, "
                  f"clairvoyant's schedule at {best.time_share:g} of the engines' time"
                  f"{'' if best.strict else ', preferred'} "
                  f"({best.columns} columns, {best.seconds:.0f} s):", flush=True)  # fmt: skip
            _print_row(times, seed, "clairv.", best.figures, 1.0)
            for variant in given.variants:
                figures = play(variant, arrivals, seed)
                paid[variant].append((figures.dollars, best.figures.dollars))
                ratio = ratio_of(paid[variant][-1:])
                found.append({"times": times, "seed": seed, "variant": variant,
                              "clairvoyant": asdict(best), **asdict(figures)})  # fmt: skip
                _print_row(times, seed, variant, figures, ratio)
                if variant == "ours":
                    failed |= abs(figures.expected - 1.0) > FORECAST or figures.own_kept < KEPT
        if paid["ours"]:
            failed |= _told(times, paid)
    (BUILD / "bench-agentic.json").write_text(json.dumps(found, indent=1) + "\n")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
