"""What people run today, as choosers of a replay: no forecast, one signal each."""

from collections.abc import Callable, Sequence

from gateway.whatif.replay import ReplayChoice, ReplayOutcome
from gateway.whatif.replay_engine import ReplayEngine
from gateway.whatif.traffic import Arrival

PATIENCE_S = 1.0  # of a proxy that falls back on a timeout
KV_THRESHOLDS = (0.1, 0.2, 0.4, 0.9)
RUNNING_THRESHOLDS = (4, 8, 16, 32, 64, 96)


class Baseline:
    """Its own choice of a seat, or `None` for the API."""

    patience_s = float("inf")

    def choose(
        self, arrival: Arrival, seats: Sequence[ReplayEngine], now_s: float, worker: int
    ) -> ReplayChoice:
        seat = self.pick(seats)
        if seat is None:
            return ReplayChoice(None)
        return ReplayChoice(seat, arrival.prompt_tokens + 256, 0, self.patience_s)

    def pick(self, seats: Sequence[ReplayEngine]) -> ReplayEngine | None:
        """The fewest in flight."""
        return min(seats, key=lambda seat: len(seat.flights))

    def on_ended(self, outcome: ReplayOutcome) -> None: ...

    def tick(self, seats: Sequence[ReplayEngine], now_s: float) -> None: ...


class MostFreeKv(Baseline):
    def pick(self, seats: Sequence[ReplayEngine]) -> ReplayEngine | None:
        return min(seats, key=lambda seat: seat.engine.kv_usage_ratio)


class TimesOut(Baseline):
    """The cheapest first; after a second without a token the API is asked."""

    patience_s = PATIENCE_S


class KvBelow(Baseline):
    def __init__(self, limit: float) -> None:
        self._limit = limit

    def pick(self, seats: Sequence[ReplayEngine]) -> ReplayEngine | None:
        seat = min(seats, key=lambda each_seat: each_seat.engine.kv_usage_ratio)
        return seat if seat.engine.kv_usage_ratio < self._limit else None


class RunningBelow(Baseline):
    """Running and waiting sequences."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def pick(self, seats: Sequence[ReplayEngine]) -> ReplayEngine | None:
        seat = min(seats, key=lambda each_seat: len(each_seat.flights))
        return seat if len(seat.flights) < self._limit else None


class LeastBusy(Baseline):
    """The API is one of the targets."""

    def __init__(self) -> None:
        self._at_api = 0

    def pick(self, seats: Sequence[ReplayEngine]) -> ReplayEngine | None:
        seat = min(seats, key=lambda each_seat: len(each_seat.flights))
        if len(seat.flights) <= self._at_api:
            return seat
        self._at_api += 1
        return None

    def on_ended(self, outcome: ReplayOutcome) -> None:
        if outcome.engine is None:
            self._at_api -= 1


class RoundRobin(Baseline):
    def __init__(self) -> None:
        self._turn = -1

    def pick(self, seats: Sequence[ReplayEngine]) -> ReplayEngine | None:
        self._turn = (self._turn + 1) % (len(seats) + 1)
        return None if self._turn == len(seats) else seats[self._turn]


BASELINES: dict[str, Callable[[], Baseline]] = {
    "all-own": Baseline,
    "most-free-kv": MostFreeKv,
    "timeout": TimesOut,
    "least-busy": LeastBusy,
    "round-robin": RoundRobin,
    **{f"kv<{limit:g}": (lambda limit=limit: KvBelow(limit)) for limit in KV_THRESHOLDS},
    **{f"run<{limit}": (lambda limit=limit: RunningBelow(limit)) for limit in RUNNING_THRESHOLDS},
}
