"""Observer that feeds a planner with minutes of traffic from the ledger, and scores them.

Each minute is read once, when it is complete in the ledger. A request counts where it arrived. Its
engine time counts in the minutes in which it ran, by its usual time while it runs. The day before a
pool is first sized is used for learning, and not scored, because there was no advice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from gateway.scaling.advised_fleet import AdvisedEngine, forget_scored
from gateway.scaling.played_fleet import arrival_window
from gateway.scaling.pool_setup import PoolSetup
from gateway.scaling.scoring import (
    PricedWindow,
    ran_in,
    realised,
    score_window,
    window_rent_pusd,
)
from ledger.economics.scaling_score import ScoredSpan
from ledger.fleet.fleet_reads import growing_changes, instances_between
from ledger.reports.fleet_demand import (
    DemandedClass,
    UsualTimes,
    arrivals,
    demanded_classes,
    first_arrival_us,
    running_ppm,
    usual_times,
)
from ledger.spans import DAY_US, Scope
from router.scaling.plan import SizesFleet

WINDOW_US = 60_000_000
SETTLE_US = 5_000_000  # from the end of a minute until its attempts are in the ledger
CLASSES_US = 600_000_000  # between two reads of prices and engine time
MOST_WINDOWS = 1_440  # maximum minutes read in one step


@dataclass(frozen=True, slots=True)
class ObservedTraffic:
    """Result of one step: scores to add, gains of changes, and the ongoing advice."""

    through_us: int
    spans: tuple[ScoredSpan, ...]
    realised: Mapping[int, int]
    advised: tuple[AdvisedEngine, ...]


class TrafficObserver:
    """Observer of one pool's traffic; `classes` is `None` while capacity is unknown."""

    def __init__(self, setup: PoolSetup, ledger: Engine) -> None:
        self._setup, self._ledger = setup, ledger
        self._read_us: int | None = None
        self._usual: tuple[UsualTimes, ...] = ()
        self.classes: tuple[DemandedClass, ...] | None = None
        self.inside = self.outside = 0
        self._forecasts: list[tuple[int, float, float]] = []  # due time, and the band's rates

    def first_us(self, now_us: int) -> int:
        """Return the start of learning: a day ago, or the first request."""
        with self._ledger.connect() as connection:
            first_us = first_arrival_us(connection, self._setup.models)
        start_us = now_us if first_us is None else max(first_us, now_us - DAY_US)
        return start_us - start_us % WINDOW_US

    def refresh(self, now_us: int) -> None:
        """Read prices, engine time and capacity if they are old, sooner while unknown.

        The usual time of requests is taken from ten minutes, ten minutes ago, of which most have
        ended.
        """
        kept_us = WINDOW_US if self.classes is None else CLASSES_US
        if self._read_us is not None and now_us - self._read_us < kept_us:
            return
        with self._ledger.connect() as connection:
            scope = Scope(now_us - DAY_US, now_us)
            found = demanded_classes(connection, self._setup.pool, scope)
            span = (now_us - 2 * CLASSES_US, now_us - CLASSES_US)
            fresh = usual_times(connection, self._setup.models, *span, now_us)
        self._usual = _with_usual(self._usual, fresh, now_us)
        self.classes = found if found is not None else self.classes
        self._read_us = now_us

    def observe(
        self,
        planner: SizesFleet,
        through_us: int,
        known_us: int,
        ran: int | None,
        advised: Sequence[AdvisedEngine],
        *,
        scored_from_us: int,
    ) -> ObservedTraffic:
        """Pass each minute up to `known_us` to the planner.

        `ran` is how many engines serve now if the plan does not act; `None` if it does, and the
        ledger says what ran.
        """
        end_us = min(known_us - SETTLE_US, through_us + MOST_WINDOWS * WINDOW_US)
        end_us -= (end_us - through_us) % WINDOW_US
        if end_us <= through_us or self.classes is None:
            return ObservedTraffic(through_us, (), {}, tuple(advised))
        spans: list[ScoredSpan] = []
        earned: dict[int, int] = {}
        with self._ledger.connect() as connection:
            models = self._setup.models
            minutes = arrivals(connection, models, through_us, end_us)
            running = running_ppm(connection, models, through_us, end_us, self._usual)
            for start_us in range(through_us, end_us, WINDOW_US):
                window = PricedWindow(
                    start_us,
                    start_us + WINDOW_US,
                    minutes.get(start_us, {}),
                    running.get(start_us, {}),
                )
                planner.observe(arrival_window(window, self.classes or ()))
                self._check_forecasts(window)
                if start_us < scored_from_us:
                    continue
                spans.append(self._score(connection, window, ran, advised))
                growing = growing_changes(connection, self._setup.pool, start_us)
                terms, curve = self._setup.score_terms(), spans[-1].curve
                for number, pusd in realised(window, curve, terms, growing).items():
                    earned[number] = earned.get(number, 0) + pusd
        return ObservedTraffic(end_us, tuple(spans), earned, tuple(forget_scored(advised, end_us)))

    def expect(self, due_us: int, low: float, high: float) -> None:
        """Store a forecast of all requests per second, to be judged at `due_us`."""
        if not self._forecasts or due_us >= self._forecasts[-1][0] + WINDOW_US:
            self._forecasts.append((due_us, low, high))

    def _check_forecasts(self, window: PricedWindow) -> None:
        rate = sum(window.arrived.values()) / (window.length_us / 1e6)
        while self._forecasts and self._forecasts[0][0] < window.end_us:
            due_us, low, high = self._forecasts.pop(0)
            if due_us < window.start_us:
                continue
            if low <= rate <= high:
                self.inside += 1
            else:
                self.outside += 1

    def _score(
        self,
        connection: Connection,
        window: PricedWindow,
        ran: int | None,
        advised: Sequence[AdvisedEngine],
    ) -> ScoredSpan:
        setup, classes = self._setup, self.classes or ()
        terms = setup.score_terms()
        if ran is not None:
            paid = ran * window_rent_pusd(window, terms)
            return score_window(window, classes, terms, (ran, paid), advised)
        rows = instances_between(connection, setup.pool, window.start_us, window.end_us)
        return score_window(window, classes, terms, ran_in(window, rows), None)


def _with_usual(
    known: tuple[UsualTimes, ...], fresh: Mapping[str, int], now_us: int
) -> tuple[UsualTimes, ...]:
    """Add usual times for new requests; classes without new ones keep theirs.

    Times older than a day are dropped, except the newest of them, which applied until the next one.
    """
    before = known[-1].by_class if known else {}
    if not (before or fresh):
        return known
    older = [each for each in known if each.from_us <= now_us - DAY_US]
    kept = known[max(0, len(older) - 1) :]
    return (*kept, UsualTimes(now_us, {**before, **fresh}))
