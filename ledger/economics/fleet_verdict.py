"""The verdict: keep, add, reduce or leave own engines, and what that saves per month.

`judge` is the only function that decides this. It does no I/O: the assumption sheet and each pool's
value curve are arguments. First page, Break-even, Plan, What-if, `ledger report`, HTTP, CSV and the
printed plan show its result and compute no totals of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction

from ledger.economics.assumptions import AssumptionSheet, PoolAssumptions
from ledger.economics.reserved_capacity import ReservedPlan
from ledger.economics.reserved_demand import plan_targets
from ledger.economics.value_curve import DepartureOrder, ValueCurve

MORE_OPTIONS = 2  # options shown beyond the best number
LEAST_OPTIONS = 3
UNBILLED = "no hour of this period is billed yet; `breakeven serve` bills each hour after its end"
MOST_OPTIONS = 64  # maximum engines to examine beyond those that run
LEAST_ANSWERS = 100  # fewer answers are too small a sample of a month's traffic
LEAST_HOURS = 168  # a whole week covers every hour of day of a quiet pool


class VerdictAction(StrEnum):
    """The change of the number of engines that a verdict recommends."""

    KEEP = "keep"
    ADD = "add"
    REDUCE = "reduce"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class VerdictOption:
    """A number of engines and its cost per month; `None` is unknown, never zero.

    `gpus` counts GPUs, or engines on a shared machine. `total_pusd` leaves unknown ops out.
    `pro_rata_pusd` is the total if all movable classes leave in proportion. `reserved` are units of
    API capacity that are cheaper than single tokens: `api_pusd` includes their rent and the
    overflow.
    """

    engines: int
    gpus: int
    why_not: str | None
    gpu_pusd: Fraction
    ops_pusd: Fraction | None
    api_pusd: Fraction | None
    total_pusd: Fraction | None
    pro_rata_pusd: Fraction | None
    reserved: tuple[ReservedPlan, ...] = ()

    @property
    def allowed(self) -> bool:
        return self.why_not is None


@dataclass(frozen=True, slots=True)
class VerdictShift:
    """An input, the value at which it changes the verdict, and the new number of GPUs."""

    name: str  # gpu_rate | ops | api_price
    pool: str
    value: Fraction  # pico-USD an hour, pico-USD a month, or a factor of all API prices
    is_above: bool  # whether the shift needs more than the value
    gpus: int


@dataclass(frozen=True, slots=True)
class PoolVerdict:
    """The verdict on one pool. `action` is `None` without a verdict; `why_none` is the reason.

    `now` buys single tokens. `worth_pusd` is the monthly saving compared with `now`. For `KEEP`
    without reserved units it is the distance to the next best allowed number, `None` if there is
    none. `other` and `other_action` are the result at the other end of the interval (pro rata).
    """

    pool: str
    assumptions: PoolAssumptions
    options: tuple[VerdictOption, ...]
    now: VerdictOption | None
    best: VerdictOption | None
    action: VerdictAction | None
    worth_pusd: Fraction | None
    interval_pusd: tuple[Fraction, Fraction] | None
    other: VerdictOption | None
    other_action: VerdictAction | None
    shifts: tuple[VerdictShift, ...] = ()
    stays: tuple[str, ...] = ()
    why_none: str | None = None

    @property
    def moves(self) -> bool:
        """Return whether the verdict changes the number of engines or reserves units."""
        if self.action is None or self.best is None:
            return False
        return self.action is not VerdictAction.KEEP or bool(self.best.reserved)

    def beyond_now(self, option: VerdictOption) -> Fraction | None:
        """Return an option's monthly cost above the present one (< 0: less), in pico-USD."""
        if self.now is None or self.now.total_pusd is None or option.total_pusd is None:
            return None
        return option.total_pusd - self.now.total_pusd

    @property
    def depends(self) -> bool:
        """Return whether the two ends of the interval recommend different numbers."""
        if self.best is None or self.other is None:
            return False
        return self.best.engines != self.other.engines

    @property
    def substitutes(self) -> tuple[str, ...]:
        """Return APIs that the verdict sends more work to and that no evaluation covers."""
        if self.action not in {VerdictAction.REDUCE, VerdictAction.LEAVE}:
            return ()
        names = (model.substitute for model in self.assumptions.models)
        return tuple(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True, slots=True)
class FleetVerdict:
    """The verdict on all pools of one sheet. Sums cover the pools that have a verdict.

    `curves` are the traffic used, for scenarios that start from this verdict.
    """

    sheet: AssumptionSheet
    pools: tuple[PoolVerdict, ...]
    curves: Mapping[str, ValueCurve] = field(default_factory=dict, compare=False, repr=False)

    @property
    def judged(self) -> tuple[PoolVerdict, ...]:
        return tuple(pool for pool in self.pools if pool.action is not None)

    @property
    def gpus(self) -> int:
        return sum(pool.best.gpus for pool in self.judged if pool.best is not None)

    @property
    def gpus_now(self) -> int:
        return sum(pool.now.gpus for pool in self.judged if pool.now is not None)

    @property
    def action(self) -> VerdictAction | None:
        """Return the fleet's action.

        If pools move in opposite directions, the most valuable move counts.
        """
        judged = self.judged
        if not judged:
            return None
        moved = [pool for pool in judged if pool.action is not VerdictAction.KEEP]
        if not moved:
            return VerdictAction.KEEP
        if self.gpus == 0:
            return VerdictAction.LEAVE
        if self.gpus != self.gpus_now:
            return VerdictAction.REDUCE if self.gpus < self.gpus_now else VerdictAction.ADD
        return max(moved, key=lambda pool: pool.worth_pusd or 0).action

    @property
    def worth_pusd(self) -> Fraction | None:
        """Return the savings of all pools that change, or the worth of keeping if none does."""
        counted = self._counted()
        known = [pool.worth_pusd for pool in counted if pool.worth_pusd is not None]
        return sum(known, Fraction(0)) if known else None

    @property
    def interval_pusd(self) -> tuple[Fraction, Fraction] | None:
        ends = [pool.interval_pusd for pool in self._counted() if pool.interval_pusd is not None]
        if not ends:
            return None
        return sum((low for low, _ in ends), Fraction(0)), sum(
            (high for _, high in ends), Fraction(0)
        )

    @property
    def depends(self) -> bool:
        return any(pool.depends for pool in self.judged)

    def total_pusd(self, *, best: bool) -> Fraction:
        """Return the monthly cost of all judged pools, at present or at their best."""
        options = [pool.best if best else pool.now for pool in self.judged]
        return sum(
            (Fraction(option.total_pusd or 0) for option in options if option is not None),
            Fraction(0),
        )

    def _counted(self) -> tuple[PoolVerdict, ...]:
        return tuple(pool for pool in self.judged if pool.moves) or self.judged


def judge(sheet: AssumptionSheet, curves: Mapping[str, ValueCurve]) -> FleetVerdict:
    """Return the verdict on a sheet. `curves` holds the traffic of every pool of the sheet.

    Raises `ValueError` if a curve has another number of engines than the sheet.
    """
    for pool in sheet.pools:
        if curves[pool.pool].engines != pool.engines:
            raise ValueError(f"pool {pool.pool}: the sheet and the curve count different engines")
    pools = tuple(_pool_verdict(sheet, pool, curves[pool.pool]) for pool in sheet.pools)
    return FleetVerdict(sheet, pools, curves)


def _pool_verdict(sheet: AssumptionSheet, pool: PoolAssumptions, curve: ValueCurve) -> PoolVerdict:
    if pool.pusd_per_hour is None:
        return _without(pool, curve, "enter your GPU rate")
    if not pool.hours:
        return _without(pool, curve, UNBILLED)
    if pool.engines == 0:
        return _without(pool, curve, "no engine runs")
    if not pool.billed_share:
        return _without(pool, curve, "its engines ran in no hour of this period")
    if (reason := _lacking_traffic(pool)) is not None:
        return _without(pool, curve, reason)
    options = _options(sheet, pool, curve)
    now = options[pool.engines]
    if now.reserved:
        now = _option(replace(sheet, reserved=()), pool, curve, pool.engines)
    best = _cheapest(options, now, pro_rata=False)
    other = _cheapest(options, now, pro_rata=True)
    worth = _worth(options, now, best, pro_rata=False)
    end = _worth(options, now, best, pro_rata=True)
    interval = None if worth is None or end is None else (min(worth, end), max(worth, end))
    shown = max(LEAST_OPTIONS, best.engines + MORE_OPTIONS, pool.engines)
    return PoolVerdict(
        pool.pool, pool, tuple(options[: shown + 1]), now, best,
        _action(best, now), worth, interval, other, _action(other, now),
        _shifts(sheet, pool, options, best), curve.stays,
    )  # fmt: skip


def _lacking_traffic(pool: PoolAssumptions) -> str | None:
    """Return why the period has too little traffic for a verdict, `None` if it has enough.

    Enough is `LEAST_ANSWERS` answers, or `LEAST_HOURS` billed hours with at most as many failures
    as answers: failed requests have no tokens, so their demand is unknown.
    """
    answers, failures = pool.answers, pool.failures
    if answers is None or answers >= LEAST_ANSWERS:
        return None
    if pool.hours >= LEAST_HOURS and failures <= answers:
        return None
    failed = f" and {failures:,} failed or were refused" if failures else ""
    count = "1 request was" if answers == 1 else f"{answers:,} requests were"
    return (
        f"{count} answered{failed} in {float(pool.hours):.3g} billed hours; a verdict needs "
        f"{LEAST_ANSWERS} answers, or {LEAST_HOURS} billed hours with at most as many failures as "
        "answers"
    )


def _without(pool: PoolAssumptions, curve: ValueCurve, reason: str) -> PoolVerdict:
    return PoolVerdict(
        pool.pool, pool, (), None, None, None, None, None, None, None, (), curve.stays, reason
    )


def _options(
    sheet: AssumptionSheet, pool: PoolAssumptions, curve: ValueCurve
) -> list[VerdictOption]:
    """Return all numbers from none to where one more engine costs more than all bought tokens."""
    pace = Fraction(sheet.month_hours) / pool.hours
    each = _month_of_one(sheet, pool)
    bought = curve.api_pusd(pool.engines) * pace
    more = min(MOST_OPTIONS, int(bought / each) if each else MOST_OPTIONS)
    found = [
        _option(sheet, pool, curve, engines)
        for engines in range(max(LEAST_OPTIONS, pool.engines + more) + 1)
    ]
    best = _cheapest(found, found[pool.engines], pro_rata=False)
    shown = best.engines + MORE_OPTIONS + 1
    return found + [_option(sheet, pool, curve, engines) for engines in range(len(found), shown)]


def _month_of_one(sheet: AssumptionSheet, pool: PoolAssumptions) -> Fraction:
    """Return the monthly cost of one engine's GPUs."""
    return Fraction(pool.pusd_per_hour or 0) * pool.count_each * _billed_hours(sheet, pool)


def _billed_hours(sheet: AssumptionSheet, pool: PoolAssumptions) -> Fraction:
    return pool.billed_share * sheet.month_hours


def _option(
    sheet: AssumptionSheet, pool: PoolAssumptions, curve: ValueCurve, engines: int
) -> VerdictOption:
    pace = Fraction(sheet.month_hours) / pool.hours
    why_not = curve.objection(engines)
    weekly = pool.ops_pusd_per_week
    ops = None if weekly is None else Fraction(weekly) * sheet.weeks
    api = pro_rata = total = end = None
    if not engines:  # traffic that can leave has a price, even if other traffic may not leave
        ops, api = Fraction(0), curve.all_bought_pusd * pace
    gpu = engines * _month_of_one(sheet, pool)
    plans: tuple[ReservedPlan, ...] = ()
    if why_not is None:
        plans, other = (
            plan_targets(sheet, pool, curve, engines, order) for order in DepartureOrder
        )
        api = curve.api_pusd(engines) * pace - _saved(plans)
        pro_rata = curve.api_pusd(engines, DepartureOrder.PRO_RATA) * pace - _saved(other)
        total, end = gpu + (ops or 0) + api, gpu + (ops or 0) + pro_rata
    return VerdictOption(
        engines, engines * pool.count_each, why_not, gpu, ops, api, total, end, plans
    )  # fmt: skip


def _saved(plans: tuple[ReservedPlan, ...]) -> Fraction:
    return sum((plan.saved_pusd for plan in plans), Fraction(0))


def _cost(option: VerdictOption, *, pro_rata: bool) -> Fraction:
    found = option.pro_rata_pusd if pro_rata else option.total_pusd
    if found is None:
        raise ValueError("an option that is not feasible has no total")
    return found


def _cheapest(options: list[VerdictOption], now: VerdictOption, *, pro_rata: bool) -> VerdictOption:
    """Return the cheapest allowed option; if equal, the smaller change, then fewer engines."""
    return min(
        (option for option in options if option.allowed),
        key=lambda option: (
            _cost(option, pro_rata=pro_rata),
            abs(option.engines - now.engines),
            option.engines,
        ),
    )


def _worth(
    options: list[VerdictOption], now: VerdictOption, best: VerdictOption, *, pro_rata: bool
) -> Fraction | None:
    here = _cost(now, pro_rata=pro_rata)
    if best is not now:
        return here - _cost(best, pro_rata=pro_rata)
    others = [option for option in options if option.allowed and option.engines != now.engines]
    if not others:
        return None
    return min(_cost(option, pro_rata=pro_rata) for option in others) - here


def _action(best: VerdictOption, now: VerdictOption) -> VerdictAction:
    if best.engines == now.engines:
        return VerdictAction.KEEP
    if best.engines == 0:
        return VerdictAction.LEAVE
    return VerdictAction.REDUCE if best.engines < now.engines else VerdictAction.ADD


def _shifts(
    sheet: AssumptionSheet, pool: PoolAssumptions, options: list[VerdictOption], best: VerdictOption
) -> tuple[VerdictShift, ...]:
    """Return the nearest rate, ops cost and API price factor that change the best number."""
    allowed = [option for option in options if option.allowed and option is not best]
    hours = pool.count_each * _billed_hours(sheet, pool)
    rates: list[tuple[Fraction, bool, int]] = []
    factors: list[tuple[Fraction, bool, int]] = []
    api = Fraction(best.api_pusd or 0)
    ops = [Fraction(option.ops_pusd or 0) for option in (best, *allowed)]
    for option, paid in zip(allowed, ops[1:], strict=True):
        fewer = option.engines < best.engines
        saved = Fraction(option.api_pusd or 0) - api + paid - ops[0]
        rate = saved / ((best.engines - option.engines) * hours)
        if rate > 0:
            rates.append((rate, fewer, option.gpus))
        # Rent of reserved units does not follow the price of a token.
        is_linear = not (option.reserved or best.reserved)
        if is_linear and Fraction(option.api_pusd or 0) != api:
            fixed = best.gpu_pusd + ops[0] - option.gpu_pusd - paid
            factor = fixed / (Fraction(option.api_pusd or 0) - api)
            if factor > 0:
                factors.append((factor, not fewer, option.gpus))
    found = []
    for name, values in (("gpu_rate", rates), ("api_price", factors)):
        above = [value for value in values if value[1]]
        below = [value for value in values if not value[1]]
        if above:
            found.append(VerdictShift(name, pool.pool, *min(above)))
        if below:
            found.append(VerdictShift(name, pool.pool, *max(below)))
    none = options[0]
    if none.allowed and best.engines and none.total_pusd is not None:
        spare = none.total_pusd - _cost(best, pro_rata=False) + ops[0]
        found.append(VerdictShift("ops", pool.pool, spare, True, 0))
    return tuple(found)
