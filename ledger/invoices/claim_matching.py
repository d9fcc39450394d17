"""Matching of claims with posted bills: the billed part, and what an open claim waits for.

Days are numbers since 1970, money is pico-USD. `billed_parts` shares the bills. A claim is settled
once it is billed in full, or once every bill that may cover it is posted. This module does no I/O.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from ledger.instants import date_of, day_number
from ledger.invoices.billed_parts import (
    REACH_DAYS,
    UNTOLD,
    BookedByDay,
    ClaimDemand,
    share_bills,
)
from ledger.invoices.billed_periods import BilledPeriod, period_at

READ_DAYS = 7  # days around a claim: bookings billed a day off compete with each other
PATIENCE_DAYS = 62  # two months: later bills are not waited for
_NOTHING: Mapping[tuple[int, str], int] = {}


class ClaimMatch(NamedTuple):
    """The billed part of a claim. `waits_for` is `None` for a settled claim."""

    part_pusd: int
    waits_for: str | None


class UnpostedBill(NamedTuple):
    """An imported invoice that is not posted."""

    number: int
    first: int
    last: int


class _PostedBills(NamedTuple):
    """The state of a provider's bills.

    `said` are indexes of periods whose bills state the total. `billed` are the periods with more
    than credits. `short` are days and models billed for less than was booked.
    """

    periods: Sequence[BilledPeriod]
    said: frozenset[int]
    billed: Sequence[BilledPeriod]
    short: frozenset[tuple[int, str]]


def match_claims(
    periods: Sequence[BilledPeriod],
    sure: BookedByDay,
    claims: Sequence[ClaimDemand],
    unposted: Sequence[UnpostedBill] = (),
    uncertain: BookedByDay = _NOTHING,
    rivals: Sequence[ClaimDemand] = (),
) -> dict[str, ClaimMatch]:
    """Return the match of each claim, by attempt.

    `sure` and `uncertain` are the bookings of the days of `reached_places`. Bills include all
    certain bookings and any part of uncertain ones. `rivals` are claims of retired attempts, which
    take their share of the bills but have no result.
    """
    places = reached_places(periods, claims)
    reached = [periods[place] for place in places]
    parts, short = share_bills(reached, sure, uncertain, [*claims, *rivals])
    posted = _PostedBills(
        periods,
        _said_places(periods, sure, uncertain, short),
        [each for each in periods if each.whole or sum(each.amounts.values()) >= 0],
        short,
    )
    return {
        claim.attempt_id: ClaimMatch(
            parts[claim.attempt_id],
            None
            if parts[claim.attempt_id] == claim.surplus_pusd
            else _waits_for(claim, posted, unposted),
        )
        for claim in claims
    }


def reached_places(periods: Sequence[BilledPeriod], claims: Sequence[ClaimDemand]) -> list[int]:
    """Return the indexes of periods whose bookings matter for these claims, in order."""
    about = range(-READ_DAYS, READ_DAYS + 1)
    days = {day + ahead for day in {claim.day for claim in claims} for ahead in about}
    near = {place for day in days if (place := period_at(periods, day)) is not None}
    beside = {place + ahead for place in near for ahead in (-1, 0, 1)}
    return sorted(place for place in beside if 0 <= place < len(periods))


def _said_places(
    periods: Sequence[BilledPeriod],
    sure: BookedByDay,
    uncertain: BookedByDay,
    short: frozenset[tuple[int, str]],
) -> frozenset[int]:
    """Return the indexes of periods whose bills state the total.

    Partial bills state a period's total once they cover its bookings, which may be none.
    """
    booked = {day for bookings in (sure, uncertain) for (day, _), pusd in bookings.items() if pusd}
    booked_places = {period_at(periods, day) for day in booked}
    short_places = {period_at(periods, day) for day in {day for day, _ in short}}
    return frozenset(
        place
        for place, period in enumerate(periods)
        if period.whole
        or (
            place not in short_places
            and (place not in booked_places or any(pusd > 0 for pusd in period.amounts.values()))
        )
    )


def _waits_for(
    claim: ClaimDemand, posted: _PostedBills, unposted: Sequence[UnpostedBill]
) -> str | None:
    """Return what a claim that is not fully billed waits for, `None` for nothing."""
    first, last = claim.day - REACH_DAYS, claim.day + REACH_DAYS
    newest = max((period.last for period in posted.billed), default=None)
    if newest is not None and newest >= last + PATIENCE_DAYS:
        return None
    is_followed = any(period.first > last for period in posted.billed)
    missing = [
        day for day in range(first, last + 1) if period_at(posted.periods, day) not in posted.said
    ]
    is_short = any(
        (day, model) in posted.short
        for day in range(first, last + 1)
        for model in (claim.model, UNTOLD)
    )
    if missing or is_short:
        for bill in unposted:
            if bill.first <= last and bill.last >= first:
                return f"invoice {bill.number} of these days is imported and not posted"
    gaps = [day for day in missing if not (is_followed and _month_is_billed(day, posted.billed))]
    if gaps:
        return f"no invoice of {date_of(gaps[0])} is posted"
    if is_short and not is_followed:
        about = date_of(claim.day)
        return f"the invoice has less than was booked about {about}: a later one decides"
    return None


def _month_is_billed(day: int, billed: Sequence[BilledPeriod]) -> bool:
    """Return whether a bill of the day's month is posted: days without lines had no traffic."""
    start = date_of(day).replace(day=1)
    following = (start + timedelta(days=31)).replace(day=1)
    first, end = day_number(start), day_number(following)
    return any(period.first < end and period.last >= first for period in billed)
