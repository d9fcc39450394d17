"""One cell, one seed, one policy: run it in virtual time and count what it was worth."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from baselines import BASELINES
from bound import Problem
from cells import ATTAINMENT, Cell
from routed import RoutedFleet, Terms, Variant
from thresholds import SIGNALS, Below, Point, sweep

from backends.simulator.latency import Latency
from gateway.whatif.apis import draw_latencies
from gateway.whatif.replay import Replay, ReplayOutcome, ReplayPolicyProtocol
from gateway.whatif.replay_engine import EngineKnowledge, ReplayEngine
from gateway.whatif.traffic import Arrival
from router.types import Policy

MAX_TOKENS = 8192  # what clients allow
FINE_S = 0.25
VARIANTS = {
    "ours": Variant(),
    "greedy": Variant(priced=False),
    "known lengths": Variant(known_lengths=True),
}
ERRORS = {
    "model x0.7": EngineKnowledge(step_factor=0.7),
    "model x1.3": EngineKnowledge(step_factor=1.3),
    "prefill x0.6": EngineKnowledge(prefill_factor=0.6),
    "scrape 1 s": EngineKnowledge(tick_s=1.0),
    "skew 50 ms": EngineKnowledge(workers=2, skew_s=0.05),
    "skew 50 ms, one look": EngineKnowledge(
        workers=2, skew_s=0.05, looks_again=False
    ),  # the control
    "model x0.7, no loops": EngineKnowledge(
        step_factor=0.7, loops=False
    ),  # the control: it must fall
}
MAIN = tuple(VARIANTS)
SWEPT = {f"limits of {name}": name for name in SIGNALS}
OTHERS = (*BASELINES, *SWEPT)


@dataclass(frozen=True)
class Score:
    """Dollars and shares; of own engines only what was served inside the SLO is avoided."""

    requests: int
    seconds: float
    bill_usd: float  # of everything at the API
    avoided_usd: float
    gross_usd: float  # avoided, promises broken or not
    own_share: float
    own_kept: float
    own_kept_ttft: float
    own_kept_tpot: float
    all_kept: float
    preempted: int


def run(cell: Cell, arrivals: list[Arrival], policy: str, seed: int) -> Score:
    knowledge = ERRORS.get(policy, EngineKnowledge())
    return _played(cell, arrivals, _chooser(cell, policy), knowledge, seed)


def best_limits(cell: Cell, arrivals: list[Arrival], name: str, seed: int) -> dict[str, Any]:
    """Every limit of one signal that was tried, and the best that kept the promises."""

    def play(limit: float) -> Point:
        chooser = Below(SIGNALS[name], limit)
        found = _played(cell, arrivals, chooser, EngineKnowledge(loops=False), seed)
        return Point(limit, found.avoided_usd, found.own_kept, chooser.refused)

    swept = sweep(SIGNALS[name], play, ATTAINMENT)
    best = None if swept.best is None else swept.best._asdict()
    return {"limits": [point._asdict() for point in swept.points], "best": best}


def _played(
    cell: Cell,
    arrivals: list[Arrival],
    chooser: ReplayPolicyProtocol,
    knowledge: EngineKnowledge,
    seed: int,
) -> Score:
    seats = [
        ReplayEngine(f"pool:own/{place}", cell.shape, knowledge) for place in range(cell.engines)
    ]
    slos = dict.fromkeys(cell.prices, cell.slo)
    answers = draw_latencies(len(arrivals), Latency(), seed)
    return score(cell, Replay(seats, slos, arrivals, answers, knowledge).run(chooser))


def _chooser(cell: Cell, name: str) -> ReplayPolicyProtocol:
    if name in BASELINES:
        return BASELINES[name]()
    policy = Policy("bench", cell.slo, kv_headroom_floor=0.05)
    terms = {model: Terms(policy, price, MAX_TOKENS) for model, price in cell.prices.items()}
    return RoutedFleet(terms, VARIANTS.get(name, Variant()))


def score(cell: Cell, outcomes: list[ReplayOutcome]) -> Score:
    own = [outcome for outcome in outcomes if outcome.engine is not None]
    kept = [item for item in own if item.has_met_slo(cell.slo)]
    count = max(1, len(own))
    return Score(
        requests=len(outcomes),
        seconds=outcomes[-1].arrival.at_s,
        bill_usd=sum(usd(cell, outcome.arrival) for outcome in outcomes),
        avoided_usd=sum(usd(cell, kept_value.arrival) for kept_value in kept),
        gross_usd=sum(usd(cell, item.arrival) for item in own),
        own_share=len(own) / len(outcomes),
        own_kept=len(kept) / count,
        own_kept_ttft=sum(item.has_met_ttft(cell.slo) for item in own) / count,
        own_kept_tpot=sum(item.has_met_tpot(cell.slo) for item in own) / count,
        all_kept=sum(outcome.has_met_slo(cell.slo) for outcome in outcomes) / len(outcomes),
        preempted=sum(outcome.preemptions > 0 for outcome in outcomes),
    )


def is_servable(cell: Cell, arrival: Arrival) -> bool:
    """Whether an empty engine would keep the promise; the bound leaves out what it would not."""
    step, shape = cell.shape.step, cell.shape
    chunks = math.ceil(arrival.prompt_tokens / shape.prefill_budget_tokens)
    return step.t0_s + step.a_s * chunks + step.d_s * arrival.prompt_tokens <= ttft_s(cell)


def ttft_s(cell: Cell) -> float:
    return (cell.slo.ttft_ms or math.inf) / 1000.0


def usd(cell: Cell, arrival: Arrival) -> float:
    """At the true lengths."""
    price = cell.prices[arrival.model]
    return price.of(arrival.prompt_tokens, arrival.output_tokens) / 1e12


def problem(cell: Cell, arrivals: list[Arrival], *, finer: int = 1) -> dict[str, Any]:
    """The bound's program, with windows so many times finer."""
    step, shape = cell.shape.step, cell.shape
    return asdict(
        Problem(
            [
                (
                    arrival.at_s,
                    arrival.prompt_tokens,
                    arrival.output_tokens,
                    usd(cell, arrival),
                    ttft_s(cell),
                    (cell.slo.tpot_ms or math.inf) / 1000.0,
                )
                for arrival in arrivals
            ],
            (step.a_s, step.b_s, step.c_s, step.d_s, step.t0_s),
            shape.kv_capacity_tokens,
            shape.max_num_seqs,
            shape.prefill_budget_tokens,
            cell.engines,
            cell.window_s / finer,
            FINE_S / finer,
        )
    )
