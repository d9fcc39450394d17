"""Traffic of a pool, learned in bounded memory."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from router.scaling.plan import ArrivalWindow, ClassArrivals, ClassForecast, DemandClass
from router.scaling.rate_forecast import BASE_RATE, BASE_WORK, RateForecaster, member, numbers
from router.scaling.residuals import MANY_POINTS, Points
from router.scaling.switching import RateMotion, spread

STEP_S = 60.0  # minimum step of the learner; shorter windows are added up
COARSE_S = 600.0
OTHER = "(other)"  # the class for those beyond the maximum number
_MOST_CLASSES = 48
_REFIT_S = 6 * 3600.0
_RESTING_WIDTH = 0.15  # in logarithms: precision of the mean that rates return to
_BAND = (0.1, 0.9)
_SURE = 0.98  # probability that internal-only traffic fits its engines
_FORGOTTEN_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Motion:
    """The current fit of a rate. `version` counts fits, so that results can be cached by it."""

    version: int
    moves: RateMotion
    points: Points


class RateTrack:
    """Forecaster of one rate, with its windows added up to steps, and its fit."""

    __slots__ = ("_forecaster", "_motion", "_next_fit", "_recent", "_recent_s", "_sum", "_sum_s")

    def __init__(self, step_s: float, base: float = BASE_RATE) -> None:
        self._forecaster = RateForecaster(step_s, base)
        self._sum = self._sum_s = 0.0
        self._recent: deque[tuple[float, float]] = deque(maxlen=64)
        self._recent_s = 0.0
        self._next_fit = 0
        self._motion: Motion | None = None

    @property
    def forecaster(self) -> RateForecaster:
        return self._forecaster

    @property
    def motion(self) -> Motion:
        if self._motion is None:
            self._fit()
        assert self._motion is not None
        return self._motion

    def observe(self, amount: float, length_s: float, ends_s: float) -> None:
        step_s = self._forecaster.step_s
        self._recent.append((amount, length_s))
        self._recent_s += length_s
        while self._recent_s - self._recent[0][1] >= step_s * 0.999:
            self._recent_s -= self._recent.popleft()[1]
        self._sum += amount
        self._sum_s += length_s
        if self._sum_s < step_s * 0.999:
            return
        self._forecaster.observe(self._sum / self._sum_s, ends_s)
        self._sum = self._sum_s = 0.0
        seen = self._forecaster.seen
        if seen >= self._next_fit:
            self._fit()
            self._next_fit = min(2 * seen, seen + int(_REFIT_S / step_s))
        elif self._resting() != self.motion.moves.resting:
            self._turn()

    def expected(self) -> float:
        """Return the expected logarithm of the rate in the step that begins now."""
        forecaster = self._forecaster
        move = forecaster.expected() - forecaster.last if forecaster.seen else 0.0
        amount = sum(amount for amount, _ in self._recent)
        return forecaster.level(amount / max(self._recent_s, 1e-9)) + move

    def rate(self) -> float:
        """Return the rate over the most recent step."""
        return sum(amount for amount, _ in self._recent) / max(self._recent_s, 1e-9)

    def ahead(self, seconds: float) -> tuple[float, float]:
        """Return the expected logarithm of the rate at that time, and how much errors widen."""
        steps = max(1.0, seconds / self._forecaster.step_s)
        pull, resting = self._forecaster.pull, self._forecaster.resting
        kept = (1 - pull) ** (steps - 1)
        wider = spread(pull, steps) * self._forecaster.width
        return resting + kept * (self.expected() - resting), wider

    @classmethod
    def recalled(cls, memory: Mapping[str, object]) -> "RateTrack":
        """Return a track restored from `memory`. Windows of an unfinished step are lost."""
        forecaster = RateForecaster.from_memory(memory)
        found = cls(forecaster.step_s, forecaster.base)
        found._forecaster = forecaster
        found._recent.append(
            (forecaster.rate(forecaster.last) * forecaster.step_s, forecaster.step_s)
        )
        found._recent_s = forecaster.step_s
        return found

    def _resting(self) -> float:
        return round(self._forecaster.resting / _RESTING_WIDTH) * _RESTING_WIDTH

    def _fit(self) -> None:
        forecaster = self._forecaster
        version = 0 if self._motion is None else self._motion.version + 1
        moves = RateMotion(
            forecaster.step_s, self._resting(), forecaster.pull, forecaster.errors.points()
        )
        self._motion = Motion(version, moves, forecaster.errors.points(MANY_POINTS))

    def _turn(self) -> None:
        motion, moves = self.motion, self.motion.moves
        turned = RateMotion(moves.step_s, self._resting(), moves.pull, moves.points)
        self._motion = Motion(motion.version, turned, motion.points)


class PoolDemand:
    """Total work and requests by class of a pool. The first window sets the step length."""

    def __init__(self) -> None:
        self._work: RateTrack | None = None
        self._coarse: RateTrack | None = None
        self._classes: dict[str, RateTrack] = {}
        self._shares: dict[str, float] = {}
        self._last_seen: dict[str, float] = {}
        self._work_s: dict[str, float] = {}  # mean work of a request by class, over an hour
        self._counted: dict[str, float] = {}  # requests behind that mean
        self.window_s = 0.0

    @property
    def observed(self) -> bool:
        return self._work is not None

    @property
    def work(self) -> RateTrack:
        assert self._work is not None
        return self._work

    @property
    def coarse(self) -> RateTrack:
        """Return the rates in steps of ten minutes, used for rent paid by the hour."""
        assert self._coarse is not None
        return self._coarse

    def observe(self, window: ArrivalWindow) -> None:
        if window.length_s <= 0:
            raise ValueError("a window's length_s must be above zero")
        if window.arrivals is None:
            return
        step_s = max(STEP_S, window.length_s)
        if self._work is None or self._coarse is None:
            self._work = RateTrack(step_s, BASE_WORK)
            self._coarse = self._work if step_s >= COARSE_S else RateTrack(COARSE_S, BASE_WORK)
        self.window_s = window.length_s
        ends_s = window.ends_us / 1e6
        arrivals = self._known(window.arrivals)
        total = sum(item.work_s for item in arrivals.values())
        self._work.observe(total, window.length_s, ends_s)
        if self._coarse is not self._work:
            self._coarse.observe(total, window.length_s, ends_s)
        fading = min(1.0, window.length_s / 3600)
        for name in sorted({*self._classes, *arrivals}):
            item = arrivals.get(name, ClassArrivals(name, 0.0, 0.0))
            track = self._classes.get(name)
            if track is None:
                track = self._classes[name] = RateTrack(self._work.forecaster.step_s)
            track.observe(item.requests, window.length_s, ends_s)
            if item.requests > 0:
                self._last_seen[name] = ends_s
            self._learn_work(name, item, fading)
            if total > 0:
                share, old = item.work_s / total, self._shares.get(name)
                self._shares[name] = share if old is None else old + fading * (share - old)

    def _learn_work(self, name: str, item: ClassArrivals, fading: float) -> None:
        """Update the mean work of a request of a class.

        A window includes work of requests that began before it, so the ratio of one window is
        inaccurate.
        """
        kept = (1 - fading) * self._counted.get(name, 0.0)
        count = kept + item.requests
        if count > 0:
            work_s = kept * self._work_s.get(name, 0.0) + item.work_s
            self._work_s[name], self._counted[name] = work_s / count, count

    def share(self, name: str) -> float:
        """Return the share of a class in the work of about the last hour."""
        return self._shares.get(name, 0.0)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._classes))

    def forecast(self, name: str, seconds: float) -> ClassForecast:
        track = self._classes.get(name)
        if track is None:
            return ClassForecast(name, seconds, 0.0, 0.0, 0.0)
        level, wider = track.ahead(seconds)
        errors = track.forecaster.errors
        points, rate = errors.points(), track.forecaster.rate
        low, high = (rate(level + wider * errors.quantile(share)) for share in _BAND)
        if track.rate() <= 0:
            low = 0.0
        # One wild hour's error is a factor of hundreds: what is outside of the band counts as its
        # ends, or the mean would be nothing that anybody expects.
        rates = ((rate(level + wider * error), share) for error, share in points)
        mean = sum(share * min(max(above, low), high) for above, share in rates)
        return ClassForecast(name, seconds, min(max(mean, low), high), low, high)

    def needed_work(self, traffic: DemandClass, seconds: float, at_s: float) -> float:
        """Return the engine-seconds per second that this class stays below with 98 % certainty."""
        track = self._classes.get(traffic.name)
        seen = self._last_seen.get(traffic.name)
        if track is None or seen is None or at_s - seen > _FORGOTTEN_S:
            return 0.0
        level, wider = track.ahead(seconds)
        upper = track.forecaster.rate(level + wider * track.forecaster.errors.quantile(_SURE))
        return max(track.rate(), upper) * self._work_s.get(traffic.name, traffic.engine_s)

    def memory(self) -> dict[str, object]:
        """Return the learned state as a JSON value; empty if nothing was observed."""
        if self._work is None or self._coarse is None:
            return {}
        return {
            "window_s": self.window_s,
            "work": self._work.forecaster.memory(),
            "coarse": self._coarse.forecaster.memory(),
            "classes": {
                name: {
                    **track.forecaster.memory(),
                    "share": self._shares.get(name, 0.0),
                    "last_seen": self._last_seen.get(name, 0.0),
                    "work_s": self._work_s.get(name, 0.0),
                }
                for name, track in self._classes.items()
            },
        }

    @classmethod
    def from_memory(cls, memory: Mapping[str, object]) -> "PoolDemand":
        """Return demand restored from `memory()`. Raises `ValueError` with the bad part's name."""
        found = cls()
        if not memory:
            return found
        (found.window_s,) = numbers(memory, "window_s", 1)
        found._work = RateTrack.recalled(member(memory, "work"))
        found._coarse = found._work
        if found._work.forecaster.step_s < COARSE_S:
            found._coarse = RateTrack.recalled(member(memory, "coarse"))
        classes = member(memory, "classes")
        for name in sorted(classes)[:_MOST_CLASSES]:
            row = member(classes, name)
            found._classes[name] = RateTrack.recalled(row)
            for kept, part in (
                (found._shares, "share"),
                (found._last_seen, "last_seen"),
                (found._work_s, "work_s"),
            ):
                (kept[name],) = numbers(row, part, 1)
            found._counted[name] = 3600 * found._classes[name].rate()
        return found

    def _known(self, arrivals: tuple[ClassArrivals, ...]) -> dict[str, ClassArrivals]:
        """Return arrivals by class; classes beyond the maximum are merged into one."""
        found: dict[str, ClassArrivals] = {}
        for item in sorted(arrivals, key=lambda item: item.name):
            names = len({*self._classes, *found})
            kept = item.name in self._classes or item.name in found or names < _MOST_CLASSES
            name = item.name if kept else OTHER
            old = found.get(name, ClassArrivals(name, 0.0, 0.0))
            found[name] = ClassArrivals(
                name, old.requests + item.requests, old.work_s + item.work_s
            )
        return found
