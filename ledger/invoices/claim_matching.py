"""Which part of each claim posted bills have, and why a claim is still open.

Pure; days are numbers since 1970, money is in pico-USD. A claim may be billed on the day before
its settle, on that day or on the next one: providers bill by the start of a request or in another
time zone. What a period's bill has beyond the bookings that are sure is shared among the claims,
per model where the bill names models. Each pico-dollar of a bill is given to one claim at most.
A claim is settled once it is billed in whole, or once every bill that can have it is posted.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from ledger.invoices.billed_periods import BilledPeriod, period_at
from ledger.invoices.supply_shares import ClaimGroup, Pool, share_supplies

REACH_DAYS = 1  # between the day of a settle and the day that a provider bills it on
PATIENCE_DAYS = 62  # two months: a bill that is later is not waited for
UNTOLD = ""  # in a model's place: lines whose item is no model of the books
_EPOCH = date(1970, 1, 1)

SureCosts = Mapping[tuple[int, str], int]  # by day and model


class ClaimDemand(NamedTuple):
    """What a provider claims of one attempt beyond what was booked."""

    attempt_id: str
    day: int
    model: str
    surplus_pusd: int


class ClaimMatch(NamedTuple):
    """The part of a claim that bills have; `waits_for` is None for one that is settled."""

    part_pusd: int
    waits_for: str | None


class UnpostedBill(NamedTuple):
    """An imported invoice that is not posted."""

    number: int
    first: int
    last: int


def match_claims(
    periods: Sequence[BilledPeriod],
    sure: SureCosts,
    claims: Sequence[ClaimDemand],
    unposted: Sequence[UnpostedBill] = (),
) -> dict[str, ClaimMatch]:
    """Return by attempt what bills have of its claim. `sure` are the bookings of all periods."""
    models = {model for _, model in sure} | {claim.model for claim in claims}
    margins = [_margins(period, sure, models) for period in periods]
    _shift_bookings(periods, margins, sure)
    parts = _share(periods, margins, claims)
    short = [
        {model for model, pusd in margin.items() if pusd < 0} for margin in margins
    ]  # sharing lowers a margin to nothing at most
    return {
        claim.attempt_id: ClaimMatch(
            parts[claim.attempt_id],
            None
            if parts[claim.attempt_id] == claim.surplus_pusd
            else _waits_for(claim, periods, short, unposted),
        )
        for claim in claims
    }


def _margins(period: BilledPeriod, sure: SureCosts, models: set[str]) -> dict[str, int]:
    """Return what the period's bill has beyond its bookings, by model; negative is a shortage."""
    margins: dict[str, int] = defaultdict(int)
    for (day, model), pusd in sure.items():
        if period.has(day):
            margins[model] -= pusd
    untold, names_all = 0, True
    for model, pusd in period.by_model.items():
        if model in models:
            margins[model] += pusd
        else:
            untold += pusd
            names_all = names_all and not pusd
    if names_all:
        return margins
    untold += sum(min(0, pusd) for pusd in margins.values())
    for model in sorted(margins):
        over = max(0, margins[model])
        taken = min(over, max(0, -untold))  # a credit of no model lowers what models have
        untold += taken
        margins[model] = over - taken
    margins[UNTOLD] = untold
    return margins


def _shift_bookings(
    periods: Sequence[BilledPeriod], margins: Sequence[dict[str, int]], sure: SureCosts
) -> None:
    """Let bookings of a period's edge be billed in the neighbour, before claims are."""
    by_day: dict[int, dict[str, int]] = {}
    for (day, model), pusd in sure.items():
        by_day.setdefault(day, {})[model] = pusd
    for place, period in enumerate(periods):
        for other, edge, beyond in (
            (place + 1, period.last, period.last + REACH_DAYS),
            (place - 1, period.first, period.first - REACH_DAYS),
        ):
            if 0 <= other < len(periods) and periods[other].has(beyond):
                _shift(margins[place], margins[other], by_day.get(edge, {}))


def _shift(margins: dict[str, int], others: dict[str, int], at_edge: Mapping[str, int]) -> None:
    """Cover shortages from the neighbour, up to what was booked on the day between them."""
    for model in sorted(margins):
        movable = sum(at_edge.values()) if model == UNTOLD else at_edge.get(model, 0)
        for pool in dict.fromkeys((model, UNTOLD)):
            moved = min(-margins[model], others.get(pool, 0), movable)
            if moved > 0:
                movable -= moved
                margins[model] += moved
                others[pool] -= moved


def _share(
    periods: Sequence[BilledPeriod],
    margins: Sequence[dict[str, int]],
    claims: Sequence[ClaimDemand],
) -> dict[str, int]:
    """Share among claims what bills have beyond the bookings; those of one day in proportion."""
    groups: dict[ClaimGroup, int] = {}
    for claim in claims:
        group = claim.day, claim.model
        groups[group] = groups.get(group, 0) + claim.surplus_pusd
    supplies = {
        (place, model): pusd
        for place, margin in enumerate(margins)
        for model, pusd in margin.items()
        if pusd > 0
    }
    given = share_supplies(groups, supplies, {group: _pools(periods, group) for group in groups})
    return {
        claim.attempt_id: claim.surplus_pusd * given[group] // max(1, groups[group])
        for claim in claims
        for group in ((claim.day, claim.model),)
    }


def _pools(periods: Sequence[BilledPeriod], group: tuple[int, str]) -> list[Pool]:
    """Return the pools that may pay a day's claims of a model, the likeliest first."""
    day, model = group
    pools: dict[Pool, None] = {}
    for ahead in (0, REACH_DAYS, -REACH_DAYS):
        place = period_at(periods, day + ahead)
        if place is not None:
            pools |= dict.fromkeys(((place, model), (place, UNTOLD)))
    return list(pools)


def _waits_for(
    claim: ClaimDemand,
    periods: Sequence[BilledPeriod],
    short: Sequence[set[str]],
    unposted: Sequence[UnpostedBill],
) -> str | None:
    """Return what a claim that is not billed in whole waits for; None for nothing."""
    first, last = claim.day - REACH_DAYS, claim.day + REACH_DAYS
    wholes = [period for period in periods if period.whole]
    newest = max((period.last for period in wholes), default=None)
    if newest is not None and newest >= last + PATIENCE_DAYS:
        return None
    is_followed = any(period.first > last for period in wholes)
    places = [period_at(periods, day) for day in range(first, last + 1)]
    missing = [
        day
        for day, place in zip(range(first, last + 1), places, strict=True)
        if place is None or not _is_whole(periods[place], short[place])
    ]
    is_short = any(place is not None and short[place] & {claim.model, UNTOLD} for place in places)
    if missing or is_short:
        for bill in unposted:
            if bill.first <= last and bill.last >= first:
                return f"invoice {bill.number} of these days is imported and not posted"
    gaps = [day for day in missing if not (is_followed and _month_is_billed(day, wholes))]
    if gaps:
        return f"no invoice of {_date(gaps[0])} is posted"
    if is_short and not is_followed:
        return f"the invoice has less than was booked about {_date(claim.day)}: a later one decides"
    return None


def _is_whole(period: BilledPeriod, short: set[str]) -> bool:
    """Parts alone say all of a period once they have what was booked of it."""
    return period.whole or (not short and any(pusd > 0 for pusd in period.by_model.values()))


def _month_is_billed(day: int, wholes: Sequence[BilledPeriod]) -> bool:
    """Whether bills of the day's month are posted: a day that they leave out had no traffic."""
    start = _date(day).replace(day=1)
    following = (start + timedelta(days=31)).replace(day=1)
    first, end = (start - _EPOCH).days, (following - _EPOCH).days
    return any(period.first < end and period.last >= first for period in wholes)


def _date(day: int) -> date:
    return _EPOCH + timedelta(days=day)
