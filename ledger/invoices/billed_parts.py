"""Shares of posted bills for bookings, credits and claims, day by day.

Days are numbers since 1970, money is pico-USD. Providers bill by the start of a request or in
another time zone, so a booking or claim may be billed on the day of its settle, the day before or
the day after. A bill is used up in this order: certain bookings, credits, uncertain bookings (each
up to the booked amount), claims. Each pico-USD is given once. This module does no I/O.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ledger.invoices.billed_periods import BilledPeriod
from ledger.invoices.supply_shares import DemandGroup, Pool, SupplyShares

REACH_DAYS = 1  # maximum days between a settle and the day on which a provider bills it
UNTOLD = ""  # as a model: lines whose item is not a model of the ledger
_SURE, _CREDIT, _UNCERTAIN, _CLAIM = range(4)  # stages of `SupplyShares`

BookedByDay = Mapping[tuple[int, str], int]  # by day and model
_PoolsByDay = Mapping[int, Sequence[Pool]]


class ClaimDemand(NamedTuple):
    """A provider's claim for one attempt, beyond the booked cost."""

    attempt_id: str
    day: int
    model: str
    surplus_pusd: int


class BilledParts(NamedTuple):
    """The result of `share_bills`. `parts` are the billed amounts of claims, by attempt.

    `short` are days and models billed for less than was booked; `UNTOLD` stands for a bill that
    does not name the model.
    """

    parts: dict[str, int]
    short: frozenset[tuple[int, str]]


def share_bills(
    periods: Sequence[BilledPeriod],
    sure: BookedByDay,
    uncertain: BookedByDay,
    claims: Sequence[ClaimDemand],
) -> BilledParts:
    """Return the billed part of each claim, beyond the bookings.

    `periods` are those whose bookings are given; bookings of other days are ignored.
    """
    days = {day for period in periods for day in range(period.first, period.last + 1)}
    models = {model for _, model in (*sure, *uncertain)} | {claim.model for claim in claims}
    supplies: dict[Pool, int] = {}
    credits_ = [_add_amounts(supplies, period, models) for period in periods]
    shares, by_day = SupplyShares(supplies), _pools_by_day(supplies)

    booked = _demands(_SURE, sure, days)
    served = _serve(shares, by_day, booked)
    short = {(group[1], group[2]) for group in booked if served[group] < booked[group]}
    for period, owed_back in zip(periods, credits_, strict=True):
        lacking = _serve_credits(shares, [*supplies], period, owed_back)
        span = range(period.first, period.last + 1)
        if any(model not in models for _, _, model in period.amounts):
            lacking |= {UNTOLD} if any(day in span for day, _ in short) else set()
        short |= {(day, model) for model in lacking for day in span}
    _serve(shares, by_day, _demands(_UNCERTAIN, uncertain, days))
    return BilledParts(_serve_claims(shares, by_day, claims), frozenset(short))


def _add_amounts(
    supplies: dict[Pool, int], period: BilledPeriod, models: set[str]
) -> dict[tuple[int, str], int]:
    """Add the amounts of a period's bill to the pools. Return its credits by day and model."""
    amounts: dict[Pool, int] = {}
    for (first, last, name), pusd in period.amounts.items():
        pool = first, last, name if name in models else UNTOLD
        amounts[pool] = amounts.get(pool, 0) + pusd
    owed_back: dict[tuple[int, str], int] = {}
    for pool, pusd in amounts.items():
        if pusd > 0:
            supplies[pool] = supplies.get(pool, 0) + pusd
        elif pusd < 0:
            key = max(pool[0], period.first), pool[2]
            owed_back[key] = owed_back.get(key, 0) - pusd
    return owed_back


def _serve_credits(
    shares: SupplyShares,
    pools: Sequence[Pool],
    period: BilledPeriod,
    owed_back: Mapping[tuple[int, str], int],
) -> set[str]:
    """Subtract credits from the period, their own day first. Return models that lack amounts.

    A credit's day is the day when it was granted, so it applies to the whole period. A credit of a
    model reduces that model's amounts and those without a model; one without a model reduces any
    amount.
    """
    demands = {(_CREDIT, day, model): pusd for (day, model), pusd in owed_back.items()}
    if not demands:
        return set()
    here = [pool for pool in pools if pool[0] <= period.last and pool[1] >= period.first]
    tiers = {group: _credit_tiers(here, group) for group in demands}
    given = shares.share(demands, tiers, lambda group, _: group[0] == _CREDIT)
    return {group[2] for group, pusd in demands.items() if given[group] < pusd}


def _credit_tiers(pools: Sequence[Pool], group: DemandGroup) -> list[list[Pool]]:
    _, day, model = group
    lowered = [pool for pool in pools if UNTOLD in (model, pool[2]) or pool[2] == model]
    lowered.sort(key=lambda pool: (_distance(pool, day), pool[2] != model, pool))
    return [[pool] for pool in lowered]


def _serve_claims(
    shares: SupplyShares, by_day: _PoolsByDay, claims: Sequence[ClaimDemand]
) -> dict[str, int]:
    """Share the rest among claims, in proportion for claims of one day and model."""
    demands: dict[DemandGroup, int] = {}
    for claim in claims:
        group = _CLAIM, claim.day, claim.model
        demands[group] = demands.get(group, 0) + claim.surplus_pusd
    given = _serve(shares, by_day, demands)
    return {
        claim.attempt_id: claim.surplus_pusd * given[group] // max(1, demands[group])
        for claim in claims
        for group in ((_CLAIM, claim.day, claim.model),)
    }


def _serve(
    shares: SupplyShares, by_day: _PoolsByDay, demands: Mapping[DemandGroup, int]
) -> dict[DemandGroup, int]:
    """Let the demands of a stage draw on the days in reach.

    A booking covered by its own day's bill stays there. Otherwise a chain of bookings, each moved
    by one day, could carry the rest of one day to any other day.
    """
    tiers = {group: _tiers(by_day, group) for group in demands}
    stages = {group[0] for group in demands} - {_SURE}
    return shares.share(
        demands, tiers, lambda group, pool: group[0] in stages or _distance(pool, group[1]) > 0
    )


def _demands(stage: int, booked: BookedByDay, days: set[int]) -> dict[DemandGroup, int]:
    return {
        (stage, day, model): pusd
        for (day, model), pusd in booked.items()
        if pusd > 0 and day in days
    }


def _pools_by_day(pools: Mapping[Pool, int]) -> _PoolsByDay:
    """Return the pools that contain each day, the shortest first."""
    by_day: dict[int, list[Pool]] = {}
    for pool in sorted(pools, key=lambda pool: (pool[1] - pool[0], pool)):
        for day in range(pool[0], pool[1] + 1):
            by_day.setdefault(day, []).append(pool)
    return by_day


def _tiers(by_day: _PoolsByDay, group: DemandGroup) -> list[list[Pool]]:
    """Return the pools in reach of a demand, the most likely first."""
    _, day, model = group
    return [
        [pool for pool in by_day.get(day + ahead, ()) if pool[2] == name]
        for ahead in (0, REACH_DAYS, -REACH_DAYS)
        for name in (model, UNTOLD)
    ]


def _distance(pool: Pool, day: int) -> int:
    """Return the days between a pool and a day, 0 if the pool contains the day."""
    return max(pool[0] - day, day - pool[1], 0)
