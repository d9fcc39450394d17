"""A simulated cloud for tests, with its own journal and the faults of real clouds.

It implements `FleetActuator`, and the view that the gateway's probe has of its engines. Its journal
of rent holds what an invoice would state, so tests check the books against an independent source.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.scaling.actuator import ActuatorError, ListedInstance

START_US = 90_000_000


@dataclass(slots=True)
class RentedEngine:
    """A rented engine as the cloud bills it; `until_us` is None while it runs."""

    name: str
    token: str
    place: int
    since_us: int
    until_us: int | None = None


@dataclass(slots=True)
class CloudFaults:
    """Faults that are switched on. `tick` is called before and after each order."""

    hangs_before: bool = False  # an order is neither executed nor answered
    hangs_after: bool = False  # an order is executed but not answered
    list_hangs: bool = False
    starts_two: bool = False
    never_ready: bool = False
    ignores_stop: bool = False
    forgets: set[str] = field(default_factory=set)  # tokens missing in lists
    ends: dict[str, int] = field(default_factory=dict)  # end of spot leases, by token, us
    tick: Callable[[str], None] = lambda _: None


class StandinCloud:
    """A cloud that rents engines and serves as the probe of their pool."""

    ordered = False
    adopts = False

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self.faults = CloudFaults()
        self.engines: list[RentedEngine] = []
        self.held: dict[int, int] = {}  # start of the pause by place, us
        self.busy_places: set[int] = set()
        self.cut = 0  # number of engines stopped with open streams
        self.pause: str | None = None

    # -- the actuator ---------------------------------------------------------------------------

    def start(self, token: str, place: int) -> None:
        self.faults.tick(f"before start {token}")
        if self.faults.hangs_before:
            raise ActuatorError("start was not done within 30 s")
        if not any(engine.token == token for engine in self.running):
            for _ in range(2 if self.faults.starts_two else 1):
                self._rent(token, place)
        self._answer(f"after start {token}")

    def stop(self, token: str, place: int) -> None:
        self.faults.tick(f"before stop {token}")
        if self.faults.hangs_before:
            raise ActuatorError("stop was not done within 30 s")
        for engine in self.running:
            if engine.token == token and not self.faults.ignores_stop:
                self.cut += place in self.busy_places
                engine.until_us = self._now_us()
        self._answer(f"after stop {token}")

    def list(self) -> list[ListedInstance]:
        if self.faults.list_hangs:
            raise ActuatorError("list was not done within 30 s")
        self._take_away()
        return [
            ListedInstance(
                engine.name, engine.token, engine.place, self.faults.ends.get(engine.token)
            )
            for engine in self.running
            if engine.token not in self.faults.forgets
        ]

    def _take_away(self) -> None:
        """End engines whose spot lease is over, with the streams that run there."""
        for engine in self.running:
            ends_us = self.faults.ends.get(engine.token)
            if ends_us is not None and ends_us <= self._now_us():
                self.cut += engine.place in self.busy_places
                engine.until_us = ends_us

    def rent_stranger(self, name: str) -> None:
        """Add an engine that a person started outside the gateway."""
        self.engines.append(RentedEngine(name, name, 99, self._now_us()))

    @property
    def running(self) -> Sequence[RentedEngine]:
        return [engine for engine in self.engines if engine.until_us is None]

    def _rent(self, token: str, place: int) -> None:
        name = f"i-{len(self.engines):03}"
        self.engines.append(RentedEngine(name, token, place, self._now_us()))

    def _answer(self, words: str) -> None:
        self.faults.tick(words)
        if self.faults.hangs_after:
            raise ActuatorError("the order was not answered within 30 s")

    # -- what the gateway sees ------------------------------------------------------------------

    def serving(self) -> frozenset[int]:
        ready_us = self._now_us() - START_US
        return frozenset(
            engine.place
            for engine in self.running
            if engine.since_us <= ready_us and not self.faults.never_ready
        )

    def busy(self) -> frozenset[int]:
        return frozenset(self.busy_places)

    def away(self) -> Mapping[int, int]:
        return dict(self.held)

    def keep_away(self, place: int, why: str) -> None:
        del why
        self.held.setdefault(place, self._now_us())

    def let_in(self, place: int) -> None:
        self.held.pop(place, None)

    def paused(self) -> str | None:
        return self.pause
