"""What people run today, as choosers of a replay: no forecast. Limits are in `thresholds.py`."""

from collections.abc import Callable, Sequence

from gateway.whatif.replay import ReplayChoice, ReplayOutcome
from gateway.whatif.replay_engine import ReplayEngine
from gateway.whatif.traffic import Arrival

PATIENCE_S = 1.0  # of a proxy that falls back on a timeout


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
}
