"""Long prompts that share beginnings, on four engines with prefix caches: who finds most of them.

Nothing leaves: every request is answered by one of the engines, and what differs is by which. The
rival is what vLLM's and SGLang's routers publish as `cache_aware`, at its defaults: one approximate
radix tree of what each worker was sent. Where the busiest has more than 64 requests more than the
idlest, and 1.5 times as many, the least busy is asked; else whose beginning is the longest, if that
is more than .3 of the prompt, else whom the least was sent to.
"""

import random
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import quantiles

from baselines import Baseline
from cells import H100, SLO
from drawn import SHARED_TOKENS, long_requests

from gateway.config.settings import parse
from gateway.whatif.policy_replay import PolicyReplay
from gateway.whatif.replay import Replay, ReplayChoice, ReplayPolicyProtocol
from gateway.whatif.replay_engine import ReplayEngine
from gateway.whatif.replay_fleet import EngineModelSource, ReplayFleet
from gateway.whatif.traffic import Arrival
from ledger.prices.book import Price, PriceBook, PriceTerms
from ledger.prices.rates import rates_from

CONFIG = """
models: {long: {targets: [pool:own], compare_with: [openai/mini]}}
pools:
  own:
    engine: {kind: simulated, model: h100-llama-3.1-8b-fp8, replicas: 4}
    gpu: {type: H100, usd_per_hour: 3}
providers: {openai: {api_key_env: X}}
policies:
- {name: long, slo: {ttft_ms: 5000, tpot_ms: 50, attainment: 0.99}, otherwise: best_effort}
"""
ENGINES, RPS, COUNT = 4, 0.58, 2500  # a second and engine, of all its promises kept
CACHES = {"its own cache": 1, "twice the cache": 2}
PROMISE = replace(SLO, ttft_ms=5000.0)
THRESHOLD, APART, TIMES = 0.3, 64, 1.5
MOST_TOKENS = 2**24 // 4  # of a worker in the tree, which counts characters
TO_HITS, TO_P95 = 1.0, 0.9  # of the rival's


class CacheAware(Baseline):
    """The published algorithm, over parts of a prompt in place of its characters."""

    def __init__(self) -> None:
        self._sent: dict[str, OrderedDict[int, None]] = {}  # by worker, oldest use first

    def choose(
        self, arrival: Arrival, seats: Sequence[ReplayEngine], now_s: float, worker: int
    ) -> ReplayChoice:
        del now_s, worker
        loads = {seat.name: len(seat.flights) for seat in seats}
        most, least = max(loads.values()), min(loads.values())
        for seat in seats:
            self._sent.setdefault(seat.name, OrderedDict())
        if most - least > APART and most > TIMES * least:
            name = min(loads, key=loads.__getitem__)
        else:
            known = {name: self._known(name, arrival.prefix) for name in loads}
            name = max(known, key=known.__getitem__)
            if known[name] * SHARED_TOKENS <= THRESHOLD * arrival.prompt_tokens:
                name = min(loads, key=lambda each: len(self._sent[each]))
        self._note(name, arrival.prefix)
        seat = next(seat for seat in seats if seat.name == name)
        return ReplayChoice(seat, arrival.prompt_tokens + 256)

    def _known(self, name: str, parts: Sequence[int]) -> int:
        sent = self._sent[name]
        return next((place for place, part in enumerate(parts) if part not in sent), len(parts))

    def _note(self, name: str, parts: Sequence[int]) -> None:
        sent = self._sent[name]
        for part in reversed(parts):  # the leaves of the tree go first
            sent[part] = None
            sent.move_to_end(part)
        while len(sent) * SHARED_TOKENS > MOST_TOKENS:
            sent.popitem(last=False)


class TurnByTurn(Baseline):
    """Round robin over the engines alone."""

    def __init__(self) -> None:
        self._turn = -1

    def pick(self, seats: Sequence[ReplayEngine]) -> ReplayEngine | None:
        self._turn = (self._turn + 1) % len(seats)
        return seats[self._turn]


@dataclass(frozen=True)
class PrefixFigures:
    """Shares of prompts' tokens that were found, and of requests at the busiest; TTFT in s."""

    policy: str
    hits: float
    ttft_p95_s: float
    kept: float
    busiest: float


def long_arrivals(times: float, seed: int, count: int = COUNT) -> list[Arrival]:
    """Return so many requests at a rate of so many times what the engines hold."""
    drawn = sorted(islice(long_requests(random.Random(f"prefixed {seed}")), count))
    first_s, last_s = drawn[0][0][0], drawn[-1][0][0]
    pace = count / (times * RPS * ENGINES) / (last_s - first_s)
    return [
        Arrival(pace * (at_s - first_s), prompt, answer, "long", max_tokens=8192, prefix=parts)
        for (at_s, prompt, answer), parts in drawn
    ]


def oracle_hits(arrivals: Sequence[Arrival]) -> float:
    """The share that one cache without end would have had of each prompt when it came."""
    seen: set[int] = set()
    found = 0
    for arrival in arrivals:
        parts = arrival.prefix
        found += next((place for place, part in enumerate(parts) if part not in seen), len(parts))
        seen.update(parts)
    return found * SHARED_TOKENS / sum(arrival.prompt_tokens for arrival in arrivals)


def play_prefixes(policy: str, arrivals: Sequence[Arrival], cache: int) -> PrefixFigures:
    settings = parse(CONFIG, name="bench")
    book = PriceBook(
        [Price(1, "openai/mini", "bench", 0, PriceTerms(rates_from({"input": 1, "output": 4})))]
    )
    shape = replace(H100, blocks=cache * (H100.blocks - 1) + 1, context_tokens=200_000)
    house = ReplayFleet(settings, book, {"own": EngineModelSource(shape, "bench")}, {}, 10**15)
    planned = PolicyReplay(house, settings, arrivals[-1].at_s)
    choosers: dict[str, ReplayPolicyProtocol] = {
        "ours": planned, "cache_aware": CacheAware(), "round robin": TurnByTurn(),
    }  # fmt: skip
    replay = Replay(planned.seats, {"long": PROMISE}, arrivals, ())
    outcomes = replay.run(choosers[policy])
    served = [sum(outcome.engine == seat.name for outcome in outcomes) for seat in planned.seats]
    found = sum(seat.engine.totals.prefix_hits for seat in planned.seats)
    return PrefixFigures(
        policy,
        found / sum(arrival.prompt_tokens for arrival in arrivals),
        quantiles([outcome.ttft_s for outcome in outcomes], n=20)[-1],
        sum(outcome.has_met_slo(PROMISE) for outcome in outcomes) / len(outcomes),
        max(served) / len(outcomes),
    )


def judge_prefixes(times: Sequence[float], seeds: int) -> tuple[list[dict[str, object]], bool]:
    """Print a table of the seeds' means; returns the figures, and whether ours suffice."""
    rows: list[dict[str, object]] = []
    is_ok = True
    print(f"{'':<42} {'policy':<12} {'hits':<7} {'TTFT p95 s':<11} {'kept':<7} busiest")
    for words, cache in CACHES.items():
        for load in times:
            means: dict[str, PrefixFigures] = {}
            drawn = [long_arrivals(load, seed) for seed in range(seeds)]
            cell = f"shared beginnings {load:g}x, {words}"
            best = sum(map(oracle_hits, drawn)) / seeds
            print(f"{cell:<42} {'oracle':<12} {best:.3f}", flush=True)
            for policy in ("ours", "cache_aware", "round robin"):
                found = [play_prefixes(policy, arrivals, cache) for arrivals in drawn]
                hits, p95_s, kept, busiest = (
                    sum(getattr(each, name) for each in found) / seeds
                    for name in ("hits", "ttft_p95_s", "kept", "busiest")
                )
                means[policy] = PrefixFigures(policy, hits, p95_s, kept, busiest)
                rows.append({"cell": cell, "oracle": best, **vars(means[policy])})
                print(
                    f"{cell:<42} {policy:<12} {hits:<7.3f} {p95_s:<11.2f} {kept:<7.4f} "
                    f"{busiest:.3f}",
                    flush=True,
                )
            ours, rival = means["ours"], means["cache_aware"]
            if ours.hits < TO_HITS * rival.hits or ours.ttft_p95_s > TO_P95 * rival.ttft_p95_s:
                is_ok = False
                print(f"{cell:<42} SHORT")
    return rows, is_ok
