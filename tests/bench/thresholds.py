"""What people compare a limit with before they pay an API, and the best limit of each in hindsight.

One row a signal: how an engine shows it, and from where to where limits are tried. A request goes
to the engine with the least of it, or to the API where that is not below the limit. `sweep` tries
at least `POINTS` limits of one signal on one cell's traffic: most of them spread evenly over its
range in ratios, the rest between the neighbours of the best that kept its promises.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from baselines import Baseline

from gateway.whatif.replay import ReplayChoice, ReplayOutcome
from gateway.whatif.replay_engine import ReplayEngine
from gateway.whatif.traffic import Arrival

POINTS, SPREAD = 40, 28  # limits of a signal; those tried before one is known to be good
RECENT_S = 5.0  # over which first tokens are averaged, as dashboards and proxies do


@dataclass
class FirstTokens:
    """What came of late, by engine: when, and how long it took in seconds."""

    at: dict[str, deque[tuple[float, float]]] = field(default_factory=lambda: defaultdict(deque))

    def mean_s(self, seat: ReplayEngine, now_s: float) -> float:
        """The mean of the last seconds, answers that still run with those that ended."""
        since_s, ended = now_s - RECENT_S, self.at[seat.name]
        while ended and ended[0][0] < since_s:
            ended.popleft()
        took = [took_s for first_s, took_s in ended if first_s >= since_s]
        took += [
            flight.first_s - flight.started_s for flight in seat.flights.values()
            if flight.first_s is not None and flight.first_s >= since_s
        ]  # fmt: skip
        return sum(took) / len(took) if took else 0.0


Read = Callable[[ReplayEngine, float, FirstTokens], float]


class Signal(NamedTuple):
    """`whole`: its values are counts, so limits are, too."""

    read: Read
    low: float
    high: float
    whole: bool = False


def _in_flight(seat: ReplayEngine, _now_s: float, _first: FirstTokens) -> float:
    """Share of the cache that running and queued requests take with what they have so far."""
    engine = seat.engine
    held = engine.context_tokens + engine.queued_prefill_tokens
    return held / seat.shape.kv_capacity_tokens


def _predicted_s(seat: ReplayEngine, _now_s: float, _first: FirstTokens) -> float:
    """How long the queue takes to read at the engine's measured pace."""
    step, budget = seat.believed, seat.shape.prefill_budget_tokens
    return step.t0_s + (step.d_s + step.a_s / budget) * seat.engine.queued_prefill_tokens


def _waiting(seat: ReplayEngine, _now_s: float, _first: FirstTokens) -> float:
    """Requests without a first token."""
    return float(sum(flight.first_s is None for flight in seat.flights.values()))


SIGNALS: dict[str, Signal] = {
    "waiting": Signal(_waiting, 1, 256, whole=True),
    "running": Signal(lambda seat, _now, _first: len(seat.flights), 1, 512, whole=True),
    "KV": Signal(lambda seat, _now, _first: seat.engine.kv_usage_ratio, 0.02, 1.0),
    "in flight": Signal(_in_flight, 0.02, 2.0),
    "predicted TTFT": Signal(_predicted_s, 0.015, 8.0),
    "recent TTFT": Signal(lambda seat, now, first: first.mean_s(seat, now), 0.015, 8.0),
}


class Below(Baseline):
    """An engine below the limit, or the API; `refused` counts who went there."""

    def __init__(self, signal: Signal, limit: float) -> None:
        self._signal, self._limit, self._first = signal, limit, FirstTokens()
        self.refused = 0

    def choose(
        self, arrival: Arrival, seats: Sequence[ReplayEngine], now_s: float, _worker: int
    ) -> ReplayChoice:
        value, _, seat = min(
            (self._signal.read(seat, now_s, self._first), place, seat)
            for place, seat in enumerate(seats)
        )
        if value >= self._limit:
            self.refused += 1
            return ReplayChoice(None)
        return ReplayChoice(seat, arrival.prompt_tokens + 256, 0)

    def on_ended(self, outcome: ReplayOutcome) -> None:
        if outcome.engine is not None:
            first_s = outcome.arrival.at_s + outcome.ttft_s
            self._first.at[outcome.engine].append((first_s, outcome.ttft_s))


class Point(NamedTuple):
    """One limit: dollars avoided, share of own answers inside their promises, who was refused."""

    limit: float
    avoided_usd: float
    own_kept: float
    refused: int


@dataclass(frozen=True)
class Swept:
    """All limits of a signal, and the best that keeps the attainment (`None`: none does)."""

    points: list[Point]
    best: Point | None


def sweep(signal: Signal, play: Callable[[float], Point], attainment: float) -> Swept:
    """Try the limits of one signal. Where nobody is refused, a higher limit changes nothing."""
    found: dict[float, Point] = {}

    def tried(limits: Sequence[float]) -> None:
        for limit in limits:
            loose = [point for point in found.values() if not point.refused]
            same = next((point for point in loose if point.limit <= limit), None)
            found[limit] = same._replace(limit=limit) if same else play(limit)

    tried(_between(signal, signal.low, signal.high, SPREAD, found))
    while len(found) < POINTS:
        limits, best = sorted(found), _best(found, attainment)
        place = 0 if best is None else limits.index(best.limit)
        low, high = limits[max(0, place - 1)], limits[min(len(limits) - 1, place + 1)]
        fresh = _between(signal, low, high, (POINTS - SPREAD) // 2, found)
        if not fresh:  # counts leave nothing between: what is untried elsewhere
            fresh = [
                limit for limit in map(float, range(int(signal.low), int(signal.high) + 1))
                if limit not in found
            ][: POINTS - len(found)]  # fmt: skip
        tried(fresh)
    points = [found[limit] for limit in sorted(found)]
    return Swept(points, _best(found, attainment))


def _best(found: dict[float, Point], attainment: float) -> Point | None:
    kept = [point for point in found.values() if point.own_kept >= attainment]
    return max(kept, key=lambda point: point.avoided_usd, default=None)


def _between(
    signal: Signal, low: float, high: float, count: int, found: dict[float, Point]
) -> list[float]:
    """So many limits from low to high that were not tried yet, evenly in ratios."""
    limits = [low * (high / low) ** (place / (count - 1)) for place in range(count)]
    if signal.whole:
        limits = [float(round(limit)) for limit in limits]
    return [limit for limit in sorted(set(limits)) if limit not in found]
