"""Account of a scaling plan: alternatives, worth of two engines, forecast, a sentence."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import log

from router.scaling.demand import PoolDemand
from router.scaling.engine_worth import DemandMix
from router.scaling.plan import (
    REASON_WORDS,
    EngineWorth,
    FleetAlternative,
    FleetState,
    PoolTerms,
    ScalePlan,
    ScaleReason,
)

_HORIZON_S = 3_600.0
_STEPS = 6  # steps that the horizon is divided into
_WILDEST = log(3.0)  # an error beyond it was a jump from next to nothing: no factor of a high rate
_PUSD = 10**12


@dataclass(frozen=True, slots=True)
class PlanBasis:
    """Inputs of a plan. `priced` is true if all movable traffic has a price elsewhere."""

    terms: PoolTerms
    demand: PoolDemand
    state: FleetState
    mix: DemandMix
    priced: bool

    @property
    def rent(self) -> int:
        rent = self.state.rent_pusd_per_hour
        return self.terms.rent.pusd_per_hour if rent is None else rent

    @property
    def horizon_s(self) -> float:
        return max(_HORIZON_S, float(self.terms.rent.unit_s), 2 * self.terms.start_s)

    def rates(self) -> Iterator[tuple[float, float, float]]:
        """Yield rates in engines, their probabilities, and their times in seconds from now."""
        step_s = self.horizon_s / _STEPS
        points = self.demand.work.motion.moves.points
        for step in range(_STEPS):
            at_s = (step + 0.5) * step_s
            level, wider = self.demand.work.ahead(at_s)
            for error, probability in points:
                moved = max(-_WILDEST, min(_WILDEST, wider * error))
                rate = self.demand.work.forecaster.rate(level + moved)
                yield rate / self.terms.capacity, probability / _STEPS, at_s

    def worths(self, places: Iterable[int]) -> tuple[EngineWorth, ...]:
        """Return the expected worth of each engine, with `None` if a price elsewhere is unknown."""
        rates = tuple(self.rates()) if self.demand.observed else ()
        known = bool(rates) and self.priced
        return tuple(
            EngineWorth(
                place,
                round(sum(share * self.mix.earns(place, rate) for rate, share, _ in rates))
                if known
                else None,
                self.rent,
            )
            for place in places
        )


def account(basis: PlanBasis, wanted: int, stop: tuple[str, ...], reason: ScaleReason) -> ScalePlan:
    """Return the plan for the engine count that `FleetPlanner.size` decided."""
    running, hours = len(basis.state.engines), basis.horizon_s / 3600
    rates = tuple(basis.rates()) if basis.demand.observed else ()
    counts = sorted({0, max(0, wanted - 1), wanted, wanted + 1, running})
    seconds = max(basis.terms.start_s, basis.demand.window_s, 60.0)
    last, following = basis.worths((wanted, wanted + 1))
    look_s = basis.demand.window_s or 60.0
    return ScalePlan(
        pool=basis.terms.pool,
        at_us=basis.state.at_us,
        wanted=wanted,
        running=running,
        stop=stop,
        horizon_s=basis.horizon_s,
        last=last if wanted else None,
        next=following,
        forecast=tuple(
            basis.demand.forecast(traffic.name, seconds) for traffic in basis.state.classes
        ),
        alternatives=tuple(_alternative(basis, rates, count, hours) for count in counts if rates),
        reason=reason,
        sentence=_sentence(basis, wanted, reason, last if wanted else None, following),
        look_again_us=basis.state.at_us + int(look_s * 1e6),
    )


def _alternative(
    basis: PlanBasis, rates: tuple[tuple[float, float, float], ...], count: int, hours: float
) -> FleetAlternative:
    """Return the expected cost of `count` engines over the horizon.

    Engines requested now serve after their start; engines that leave are no longer paid.
    """
    running, bought = len(basis.state.engines), 0.0
    reserved = basis.terms.rent.reserved
    starts, step_s = max(0, count - running), basis.horizon_s / _STEPS
    for rate, share, at_s in rates:
        ready = min(1.0, max(0.0, (at_s + step_s / 2 - basis.terms.start_s) / step_s))
        avoided = ready * basis.mix.value(count, rate)
        avoided += (1 - ready) * basis.mix.value(min(count, running), rate)
        bought += share * (basis.mix.value(rate, rate) - avoided)
    return FleetAlternative(
        engines=count,
        rent_pusd=round(max(count, reserved) * basis.rent * hours),
        api_pusd=round(max(0.0, bought) * hours),
        start_pusd=starts * basis.terms.cold_pusd,
    )


def _sentence(
    basis: PlanBasis,
    wanted: int,
    reason: ScaleReason,
    last: EngineWorth | None,
    following: EngineWorth,
) -> str:
    """Return the number, the reason, and earnings and rent of the last and the next engine."""
    running = len(basis.state.engines)
    change = f"{running} to {wanted} engines" if wanted != running else f"{wanted} engines stay"
    parts = [f"{basis.terms.pool}: {change}: {REASON_WORDS[reason]}"]
    parts += [
        f"engine {worth.place} avoids {_dollars(worth.value_pusd)} an hour and costs "
        f"{_dollars(worth.rent_pusd)}"
        for worth in (last, following)
        if worth is not None and worth.value_pusd is not None
    ]
    if following.value_pusd is None:
        parts.append("what an engine avoids is not known")
    return "; ".join(parts) + "."


def _dollars(pusd: int) -> str:
    return f"${pusd / _PUSD:,.2f}"
