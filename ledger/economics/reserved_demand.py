"""Reserved API capacity that pays for a pool at a given number of engines.

The demand is the pool's own spill: tokens bought for lack of capacity and tokens that would newly
leave, by window and API. Other models' traffic at that API is not counted.
"""

from fractions import Fraction

from ledger.economics.assumptions import AssumptionSheet, PoolAssumptions
from ledger.economics.reserved_capacity import ReservedPlan, TargetDemand, plan_reserved
from ledger.economics.value_curve import DepartureOrder, ValueCurve

MINUTES_PER_HOUR = 60


def plan_targets(
    sheet: AssumptionSheet,
    pool: PoolAssumptions,
    curve: ValueCurve,
    engines: int,
    order: DepartureOrder,
) -> tuple[ReservedPlan, ...]:
    """Return, for each target with an offer, the best offer's units if they save money."""
    targets = sorted({offer.target for offer in sheet.reserved})
    if not targets or len(pool.models) != len(curve.classes):
        return ()
    found = []
    for target in targets:
        places = [n for n, model in enumerate(pool.models) if model.fallback == target]
        demand = _demand(sheet, pool, curve, curve.at_apis(engines, order), places)
        plans = [
            plan
            for offer in sheet.reserved
            if offer.target == target
            and (
                plan := plan_reserved(
                    offer,
                    demand,
                    month_hours=sheet.month_hours,
                    period_minutes=pool.hours * MINUTES_PER_HOUR,
                )
            )
            is not None
        ]
        if plans:
            found.append(max(plans, key=lambda plan: plan.saved_pusd))
    return tuple(found)


def _demand(
    sheet: AssumptionSheet,
    pool: PoolAssumptions,
    curve: ValueCurve,
    windows: list[tuple[tuple[Fraction, ...], tuple[Fraction, ...], int]],
    places: list[int],
) -> TargetDemand:
    paid = {}  # pico-USD per token bought today, by class
    for place in places:
        bought = sum(window.bought[place] * window.times for window in curve.windows)
        paid[place] = Fraction(curve.bought_pusd[place], bought) if bought else Fraction(0)
    cost, counts = Fraction(0), []
    for leaving, bought_tokens, times in windows:
        tokens = Fraction(0)
        for place in places:
            price = Fraction(curve.classes[place].pusd_per_token or 0)
            cost += times * (leaving[place] * price + bought_tokens[place] * paid[place])
            tokens += leaving[place] + bought_tokens[place]
        counts.append((tokens, times))
    pace = Fraction(sheet.month_hours) / pool.hours
    return TargetDemand(counts, pool.window_minutes, cost, pace)
