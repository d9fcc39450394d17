"""Planner of a pool's size: an engine runs if it earns more than its rent.

The k-th engine is started if its expected earnings, over all possible future rates, exceed its rent
and its start. It is stopped if the next step is not expected to earn its rent and keeping it costs
more than the next start (`switching.py`). Where one engine is a small part of the fleet, this is
the quantile `1 - rent / value` of the traffic. Internal-only traffic, reserved hours and the
configured limits bound the number.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil, exp, log, sqrt

from router.scaling.demand import COARSE_S, STEP_S, Motion, PoolDemand
from router.scaling.engine_worth import DemandMix
from router.scaling.plan import (
    ArrivalWindow,
    EngineLease,
    FleetState,
    PoolTerms,
    ScalePlan,
    ScaleReason,
    SizesFleet,
)
from router.scaling.plan_account import PlanBasis, account
from router.scaling.rate_points import RatePoints
from router.scaling.residuals import widened
from router.scaling.switching import (
    RateMotion,
    SwitchCosts,
    SwitchSolver,
    SwitchValue,
    start_steps,
)

_REMEMBERED = 512  # solved engines
_LOOKED_AHEAD_S = 4 * 3600.0
_MOST_STEPS = 60
_BLOCK_S = 1_800.0  # rent paid this far ahead is planned in blocks
_SLOW_START_S = 600.0  # from which starts are planned by the slower forecast
_BLOCK_STEPS = (1, 2, 3, 4, 6)  # of ten minutes: lengths that are planned
_NOISE_S = 72.0  # of rent that a start must earn beyond its cost, for one-minute windows
_RENT_WIDTH = 0.05  # in logarithms: spot rents treated as equal beyond the next step
_SHARE_WIDTH = 0.02
_SMALL_SHARE = 0.01
_ALIKE = 12  # places from which two neighbours, then three, are solved as one


@dataclass(frozen=True, slots=True)
class EngineCount:
    """A number of engines, the engines to stop, and the reason."""

    wanted: int
    stop: tuple[str, ...]
    reason: ScaleReason


class FleetPlanner:
    """Planner of one pool. `observe` takes arrivals; `plan` changes only a cache."""

    def __init__(self, terms: PoolTerms, demand: PoolDemand | None = None) -> None:
        self._terms = terms
        self._demand = PoolDemand() if demand is None else demand
        self._solved: OrderedDict[tuple[object, ...], SwitchValue] = OrderedDict()

    @classmethod
    def from_memory(cls, terms: PoolTerms, memory: Mapping[str, object]) -> "FleetPlanner":
        """Return a planner that continues from `memory`. Raises `ValueError` if it is damaged."""
        return cls(terms, PoolDemand.from_memory(memory))

    def memory(self) -> dict[str, object]:
        return self._demand.memory()

    @property
    def terms(self) -> PoolTerms:
        return self._terms

    @property
    def demand(self) -> PoolDemand:
        return self._demand

    def observe(self, window: ArrivalWindow) -> None:
        self._demand.observe(window)

    def plan(self, state: FleetState) -> ScalePlan:
        """Return the number of engines with the account behind it."""
        sizing = self.size(state)
        basis = PlanBasis(self._terms, self._demand, state, self._mix(state), self._priced(state))
        return account(basis, sizing.wanted, sizing.stop, sizing.reason)

    def size(self, state: FleetState) -> EngineCount:
        """Return the number of engines, the engines to stop and the reason, without an account."""
        terms, running = self._terms, len(state.engines)
        bounds = self._bounds(state)
        if not self._demand.observed:
            return self._bounded(running, bounds, state, ScaleReason.UNOBSERVED)
        mix, known = self._mix(state), self._priced(state)
        if not mix.dearest and not known:
            return self._bounded(running, bounds, state, ScaleReason.UNPRICED)
        choice = EngineChoice(self, state, mix)
        wanted, free = running, len(_stoppable(state, terms, self._demand.window_s))
        wanted = _reach(wanted, terms.most, choice.starts)
        if wanted > running:
            return self._bounded(wanted, bounds, state, ScaleReason.EARNS_RENT)
        reason = ScaleReason.HOLD
        while wanted > bounds[0] and choice.stops(wanted):
            if not known:
                reason = ScaleReason.UNPRICED
                break
            if running - wanted >= free:
                reason = ScaleReason.PAID_AHEAD
                break
            wanted -= 1
        if wanted < running:
            reason = ScaleReason.BELOW_RENT
        return self._bounded(wanted, bounds, state, reason)

    def solved(
        self, engine: int, mix: DemandMix, rent: float, motion: Motion, block: int
    ) -> SwitchValue:
        """Return the switching value of one engine, cached until one of its inputs changes."""
        terms, step_s = self._terms, motion.moves.step_s
        if rent != interrupted_rent(
            terms, terms.rent.pusd_per_hour
        ):  # a spot rent, which changes all the time
            rent = exp(round(log(max(rent, 1.0)) / _RENT_WIDTH) * _RENT_WIDTH)
        key = (engine, mix, rent, step_s, motion.version, motion.moves.resting, block)
        value = self._solved.get(key)
        if value is not None:
            self._solved.move_to_end(key)
            return value
        moves = replace(motion.moves, resting=motion.moves.resting - log(terms.capacity))
        base = self._demand.work.forecaster.base / terms.capacity
        solver = SwitchSolver(engine, mix.dearest, moves, rent, base)
        costs = SwitchCosts(rent, terms.start_s, start_pusd(terms, rent, step_s), block)
        steps = min(_MOST_STEPS, max(6, int(_LOOKED_AHEAD_S / step_s)))
        points = RatePoints(motion.points)
        value = solver.solve(
            lambda level: mix.mean_earned(engine, points, level, base), costs, steps
        )
        self._solved[key] = value
        if len(self._solved) > _REMEMBERED:
            self._solved.popitem(last=False)
        return value

    def _mix(self, state: FleetState) -> DemandMix:
        kept: list[tuple[float, float]] = []
        movable: list[tuple[float, float]] = []
        seen = 0.0
        for traffic in state.classes:
            share = round(self._demand.share(traffic.name) / _SHARE_WIDTH) * _SHARE_WIDTH
            if len(state.classes) == 1:
                share = 1.0
            seen += share
            price = (traffic.pusd_per_request or 0) / traffic.engine_s * 3600
            price *= self._terms.capacity
            (movable if traffic.movable else kept).append((share, price))
        scale = 1 / seen if seen > 0 else 0.0
        fixed = []
        for batch in state.batches:
            left_s = max(3600.0, (batch.due_us - state.at_us) / 1e6)
            if batch.pusd and batch.engine_s > 0:
                engines = round(batch.engine_s / left_s / self._terms.capacity, 2)
                price = batch.pusd / batch.engine_s * 3600 * self._terms.capacity
                fixed.append((engines, price))
        return DemandMix.ordered(
            [(share * scale, price) for share, price in kept],
            [(share * scale, price) for share, price in movable],
            fixed,
        )

    def _priced(self, state: FleetState) -> bool:
        """Return whether all movable traffic has a price elsewhere."""
        return not any(
            traffic.movable
            and traffic.pusd_per_request is None
            and self._demand.share(traffic.name) > _SMALL_SHARE
            for traffic in state.classes
        )

    def _bounds(self, state: FleetState) -> tuple[int, ScaleReason]:
        """Return the minimum number of engines and its reason."""
        terms = self._terms
        kept = sum(not engine.stoppable for engine in state.engines)
        found = [(terms.least, ScaleReason.LEAST)]
        found.append((max(terms.rent.reserved, kept), ScaleReason.RESERVED))
        if self._demand.observed:
            seconds = terms.start_s + max(60.0, self._demand.window_s)
            work = sum(
                self._demand.needed_work(traffic, seconds, state.at_us / 1e6)
                for traffic in state.classes
                if not traffic.movable
            )
            if work > 0:  # any amount: internal-only traffic has no other target
                need = max(1, ceil(work / terms.capacity - 1e-9)) + terms.internal_spare
                found.append((need, ScaleReason.INTERNAL_NEED))
        return max(found, key=lambda row: row[0])

    def _bounded(
        self, wanted: int, bounds: tuple[int, ScaleReason], state: FleetState, reason: ScaleReason
    ) -> EngineCount:
        terms, running = self._terms, len(state.engines)
        if wanted < bounds[0]:
            wanted, reason = bounds
        elif 0 < wanted == bounds[0] and reason in {ScaleReason.HOLD, ScaleReason.BELOW_RENT}:
            reason = bounds[1]
        if wanted > terms.most:
            wanted, reason = terms.most, ScaleReason.MOST
        surplus = max(0, running - wanted)
        free = _stoppable(state, terms, self._demand.window_s)
        if surplus > len(free):
            surplus, wanted = len(free), running - len(free)
            reason = ScaleReason.PAID_AHEAD
        return EngineCount(wanted, tuple(engine.token for engine in free[:surplus]), reason)


_INTERFACE: type[SizesFleet] = FleetPlanner  # mypy checks that the planner implements it


class EngineChoice:
    """Decision whether the k-th engine should start or stop, for one state of the fleet.

    An engine paid by the hour does not bind its place for an hour: the fleet can shrink as soon as
    the paid time of any of its engines ends. A place is bound until then, which sets the block
    length.
    """

    def __init__(self, planner: FleetPlanner, state: FleetState, mix: DemandMix) -> None:
        self._planner, self._mix = planner, mix
        self._terms = terms = planner.terms
        rent = state.rent_pusd_per_hour
        self._rent = interrupted_rent(terms, terms.rent.pusd_per_hour if rent is None else rent)
        demand = planner.demand
        self._track = demand.work
        self._base = demand.work.forecaster.base / terms.capacity
        self._expected = demand.work.expected() - log(terms.capacity)
        if terms.start_s >= _SLOW_START_S and demand.coarse is not demand.work:
            self._track = demand.coarse
            self._expected = self._moves().after(self._expected)
        motion, width = self._track.motion, self._track.forecaster.width
        self._points = RatePoints(widened(motion.points, width))
        self._means: dict[int, float] = {}
        self._few_points = widened(motion.moves.points, width)
        self._running = len(state.engines)
        look_s = demand.window_s
        self._ends = sorted(
            left for left in (_left_s(engine, state, terms) for engine in state.engines)
            if left >= look_s
        )  # fmt: skip

    def starts(self, engine: int) -> bool:
        block = self._block(max(0, engine - self._running - 1), starting=True)
        if block > 1:
            value, shift = self._solved(engine, block)
            return value.at(self._level() + shift, value.starting) > 0
        return self._gain(engine) > self._lost(engine)

    def stops(self, engine: int) -> bool:
        block = self._block(max(0, engine - 1 - len(self._ends)), starting=False)
        if block > 1:
            value, shift = self._solved(engine, block)
            return value.at(self._level() + shift, value.renewing) < 0
        return self._gain(engine) < 0

    def _block(self, place: int, *, starting: bool) -> int:
        """Return the coarse steps until the fleet could shrink to this size again, at least one."""
        terms = self._terms.rent
        paid_s = float(max(terms.unit_s, terms.least_s) if starting else terms.unit_s)
        if paid_s < _BLOCK_S:
            return 1
        bound_s = min(paid_s, self._ends[place]) if place < len(self._ends) else paid_s
        return min(_BLOCK_STEPS, key=lambda steps: abs(steps * COARSE_S - bound_s))

    def _solved(self, engine: int, block: int) -> tuple[SwitchValue, float]:
        """Return the switching value at the engine's place or a near one, and the level shift.

        Rates move in logarithms, so engines at high places switch alike at proportional rates.
        """
        track = self._planner.demand.coarse if block > 1 else self._track
        width = max(1, engine // _ALIKE)
        place = round(engine / width) * width
        value = self._planner.solved(place, self._mix, self._rent, track.motion, block)
        return value, log((place - 0.5 + self._base) / (engine - 0.5 + self._base))

    def _moves(self) -> RateMotion:
        moves = self._track.motion.moves
        return replace(moves, resting=moves.resting - log(self._terms.capacity))

    def _earned(self, engine: int) -> float:
        """Return the pico-USD that the engine is expected to earn in the coming step."""
        found = self._means.get(engine)
        if found is None:
            mean = self._mix.mean_earned(engine, self._points, self._expected, self._base)
            found = self._means[engine] = mean * self._track.motion.moves.step_s / 3600
        return found

    def _gain(self, engine: int) -> float:
        """Return the coming step's earnings minus rent, plus the value of being on after it."""
        motion = self._track.motion
        rent = self._rent * motion.moves.step_s / 3600
        value, shift = self._solved(engine, 1)
        after = value.mean(self._expected + shift, self._few_points)
        return self._earned(engine) - rent + after

    def _lost(self, engine: int) -> float:
        step_s = self._track.motion.moves.step_s
        steps = sum(start_steps(self._terms.start_s, step_s))
        return start_pusd(self._terms, self._rent, step_s) + steps * self._earned(engine)

    def _level(self) -> float:
        """Return the last rate from which the coarse motion leads to the expected rate."""
        if self._planner.demand.coarse is not self._planner.demand.work:
            return self._planner.demand.work.expected() - log(self._terms.capacity)
        moves = self._moves()
        return (self._expected - moves.pull * moves.resting) / (1 - moves.pull)


def _reach(running: int, most: int, starts: Callable[[int], bool]) -> int:
    """Return the last engine that starts. All engines before it start, so steps may double."""
    reached, step = running, 1
    while reached < most and starts(min(most, reached + step)):
        reached = min(most, reached + step)
        step *= 2
    beyond = min(most + 1, reached + step)
    while beyond - reached > 1:
        middle = (reached + beyond) // 2
        if starts(middle):
            reached = middle
        else:
            beyond = middle
    return reached


def interrupted_rent(terms: PoolTerms, rent: float) -> float:
    """Return the rent of an hour of serving in pico-USD, including the cost of interruptions.

    An interrupted engine is replaced: another start is paid, and its caches are cold.
    """
    return rent + terms.interruptions_per_hour * (rent * terms.start_s / 3600 + terms.cold_pusd)


def start_pusd(terms: PoolTerms, rent: float, step_s: float) -> float:
    """Return the cost of a start besides its time: cold caches, and a margin for noise.

    The noise of rates falls with the square root of the time that they are counted over.
    """
    noise_s = _NOISE_S * sqrt(min(1.0, STEP_S / step_s))
    return terms.cold_pusd + rent * noise_s / 3600


def _left_s(engine: EngineLease, state: FleetState, terms: PoolTerms) -> float:
    """Return for how many seconds stopping this engine would save nothing."""
    age_s = (state.at_us - engine.asked_us) / 1e6 + terms.drain_s
    least_s = max(0.0, terms.rent.least_s - age_s)
    unit_s = terms.rent.unit_s
    if unit_s <= 1 or age_s <= 0:
        return max(least_s, float(unit_s) if unit_s > 1 else 0.0)
    return max(least_s, -age_s % unit_s)


def _stoppable(state: FleetState, terms: PoolTerms, look_s: float) -> list[EngineLease]:
    """Return the engines whose stop saves rent before the next plan, youngest first."""
    found = [
        engine
        for engine in state.engines
        if engine.stoppable
        and _left_s(engine, state, terms) < (look_s if terms.rent.unit_s > 1 else 1e-6)
    ]
    return sorted(found, key=lambda engine: (-engine.asked_us, engine.token))
