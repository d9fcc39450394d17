"""Booked costs of a party by day, from attempts and from sums of retired attempts.

Invoices are compared with `booked_costs`, claims are matched with `provider_bookings`. Both count
retired attempts: by the sums kept at retirement, or by their postings if an earlier release kept no
sums. Days are UTC unless an offset is given; money is pico-USD.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    case,
    exists,
    func,
    or_,
    select,
)

from ledger.accounts import SUSPENSE, adjustments, provider_payable
from ledger.instants import date_of, day_number
from ledger.invoices.billing_days import billing_day, day_column, day_start_us
from ledger.invoices.reconcile import ADJUSTED, RETIRED, BookedCost, model_of
from ledger.orm.books import LOST, AttemptRow, ClaimRow, PostingRow
from ledger.orm.condensings import CondensedPostingRow
from ledger.orm.fleet import GpuHourRow
from ledger.orm.seals import RetiredBookingRow, RetirementRow
from ledger.orm.types import exact_sum
from ledger.spans import DAY_US

PROVIDER, GPU = "provider:", "gpu:"
_UNCERTAIN = ("estimated", "bound", "continuous")  # bases of a cost that a bill may undercut


class _BillingDays(NamedTuple):
    """Billing days since 1970, both included. `offset_min` is minutes ahead of UTC."""

    first: int
    last: int
    offset_min: int = 0

    def number(self, instant: Any) -> ColumnElement[int]:
        """Return the SQL expression for the billing day of a column of times."""
        return day_column(instant, self.offset_min)

    def have(self, instant: Any) -> ColumnElement[bool]:
        """Return the SQL condition that a time is in these days."""
        start_us = day_start_us(self.first, self.offset_min)
        return and_(instant >= start_us, instant < day_start_us(self.last + 1, self.offset_min))


class ProviderBookings(NamedTuple):
    """Booked costs by day since 1970 and model, certain and uncertain.

    `retired_claims` are the claims of retired attempts beyond their costs. `unknown` are days with
    retired attempts of unknown models, because an earlier release kept no sums of them.
    """

    sure: dict[tuple[int, str], int]
    uncertain: dict[tuple[int, str], int]
    retired_claims: dict[tuple[int, str], int]
    unknown: frozenset[int]


def is_uncertain() -> ColumnElement[bool]:
    """Return the SQL condition for attempts that may be billed for less than their booking.

    These are lost attempts, and costs at a bound, at an estimate or without a basis. An attempt
    with a claim is billed for at least its cost. The query must join `ClaimRow`.
    """
    told = and_(AttemptRow.basis.is_not(None), AttemptRow.basis.not_in(_UNCERTAIN))
    return and_(ClaimRow.attempt_id.is_(None), or_(AttemptRow.status == LOST, ~told))


def booked_costs(
    connection: Connection, party: str, first: date, last: date, *, offset_min: int = 0
) -> list[BookedCost]:
    """Return the booked costs of a party from the first day to the last, both included.

    `offset_min` is the minutes by which a provider's days are ahead of UTC.
    """
    days = _BillingDays(day_number(first), day_number(last))
    if party.startswith(GPU):
        costs = _gpu_costs(connection, party.removeprefix(GPU), days)
    else:
        provider, own = party.removeprefix(PROVIDER), days._replace(offset_min=offset_min)
        costs = _attempt_costs(connection, provider, own) + _claimed(connection, provider, own)
        costs += _retired_costs(connection, provider, own)
    return costs + _adjusted_costs(connection, party.removeprefix(PROVIDER), days)


def provider_bookings(
    connection: Connection, provider: str, spans: Iterable[tuple[int, int]], offset_min: int
) -> ProviderBookings:
    """Return a provider's bookings in these spans of its billing days."""
    bookings = ProviderBookings({}, {}, {}, frozenset())
    unknown: set[int] = set()
    for span in spans:
        days = _BillingDays(*span, offset_min)
        for day, model, is_sure, pusd in _booked(connection, provider, days):
            _add(bookings.sure if is_sure else bookings.uncertain, day, model, pusd)
        for booking in _retired_bookings(connection, provider, days):
            day, model = billing_day(booking.start_us, offset_min), booking.upstream_model
            _add(bookings.sure, day, model, booking.sure_pusd)
            _add(bookings.uncertain, day, model, booking.uncertain_pusd)
            _add(bookings.retired_claims, day, model, booking.claimed_pusd)
        unknown.update(_unsummed(connection, provider, days))
    return bookings._replace(unknown=frozenset(unknown))


def _add(sums: dict[tuple[int, str], int], day: int, model: str, pusd: int) -> None:
    key = day, model_of(model)
    if pusd:
        sums[key] = sums.get(key, 0) + pusd


def _booked(
    connection: Connection, provider: str, days: _BillingDays
) -> Iterable[tuple[int, str, bool, int]]:
    """Yield costs of attempts by day, model and certainty."""
    day, sure = days.number(AttemptRow.settled_us), case((is_uncertain(), 0), else_=1)
    query = (
        select(
            day, AttemptRow.upstream_model, sure,
            exact_sum(func.coalesce(AttemptRow.cost_pusd, 0)),
        )
        .outerjoin(ClaimRow, ClaimRow.attempt_id == AttemptRow.attempt_id)
        .where(AttemptRow.provider == provider, days.have(AttemptRow.settled_us))
        .group_by(day, AttemptRow.upstream_model, sure)
    )  # fmt: skip
    for number, model, is_sure, pusd in connection.execute(query):
        yield int(number), model, bool(is_sure), int(pusd)


def _attempt_costs(connection: Connection, provider: str, days: _BillingDays) -> list[BookedCost]:
    day, cost = days.number(AttemptRow.settled_us), func.coalesce(AttemptRow.cost_pusd, 0)
    lost, sure = AttemptRow.status == LOST, AttemptRow.status != LOST
    uncertain = sure & is_uncertain()
    failed = sure & (AttemptRow.status == "upstream_error") & (AttemptRow.cost_pusd == 0)
    query = (
        select(
            day, AttemptRow.upstream_model, AttemptRow.team_id,
            exact_sum(cost), func.count(),
            exact_sum(case((uncertain, cost), else_=0)),
            func.sum(case((uncertain, 1), else_=0)),
            exact_sum(case((lost, cost), else_=0)),
            func.sum(case((lost, 1), else_=0)),
            func.sum(case((failed, 1), else_=0)),
            func.sum(case((sure & AttemptRow.cost_pusd.is_(None), 1), else_=0)),
        )
        .outerjoin(ClaimRow, ClaimRow.attempt_id == AttemptRow.attempt_id)
        .where(AttemptRow.provider == provider, days.have(AttemptRow.settled_us))
        .group_by(day, AttemptRow.upstream_model, AttemptRow.team_id)
    )  # fmt: skip
    return [
        BookedCost(date_of(int(at)), model, team, pusd, *map(int, counts))
        for at, model, team, pusd, *counts in connection.execute(query)
    ]


def _claimed(connection: Connection, provider: str, days: _BillingDays) -> list[BookedCost]:
    """Return the provider's claims beyond attempts' costs, which it may bill."""
    day = days.number(ClaimRow.settled_us)
    surplus = exact_sum(ClaimRow.claimed_pusd - ClaimRow.booked_pusd)
    query = (
        select(day, AttemptRow.upstream_model, AttemptRow.team_id, surplus)
        .join(AttemptRow, AttemptRow.attempt_id == ClaimRow.attempt_id)
        .where(AttemptRow.provider == provider, days.have(ClaimRow.settled_us))
        .group_by(day, AttemptRow.upstream_model, AttemptRow.team_id)
    )
    return [
        BookedCost(date_of(int(at)), model, team, pusd, uncertain_pusd=pusd)
        for at, model, team, pusd in connection.execute(query)
    ]


def _retired_costs(connection: Connection, provider: str, days: _BillingDays) -> list[BookedCost]:
    """Return costs and claims of retired attempts, whose sum is what was posted."""
    costs = [
        BookedCost(
            date_of(billing_day(booking.start_us, days.offset_min)),
            booking.upstream_model,
            booking.team_id,
            booking.sure_pusd + booking.uncertain_pusd + booking.claimed_pusd,
            booking.attempts,
            uncertain_pusd=booking.uncertain_pusd + booking.claimed_pusd,
        )
        for booking in _retired_bookings(connection, provider, days)
    ]
    return costs + [
        BookedCost(date_of(day), RETIRED, RETIRED, pusd)
        for day, pusd in sorted(_unsummed(connection, provider, days).items())
    ]


@dataclass(frozen=True, slots=True)
class RetiredBooking:
    """Sums of retired attempts in pico-USD, per quarter of an hour from `start_us`.

    See `RetiredBookingRow`.
    """

    provider: str
    start_us: int
    upstream_model: str
    team_id: str
    attempts: int
    sure_pusd: int
    uncertain_pusd: int
    claimed_pusd: int


def _retired_bookings(
    connection: Connection, provider: str, days: _BillingDays
) -> list[RetiredBooking]:
    """Return the sums kept at retirement. Parts of one retirement are separate."""
    table = RetiredBookingRow
    query = (
        select(*(getattr(table, field.name) for field in fields(RetiredBooking)))
        .where(table.provider == provider, days.have(table.start_us))
        .order_by(table.number, table.part, table.line)
    )
    return [RetiredBooking(*row) for row in connection.execute(query)]


def _unsummed(connection: Connection, provider: str, days: _BillingDays) -> dict[int, int]:
    """Return, by day, postings of retired attempts that the kept sums do not include.

    The days are UTC days, because compacted postings are.
    """
    until_us = connection.execute(select(func.max(RetirementRow.until_us))).scalar()
    if not until_us:
        return {}
    utc = days._replace(offset_min=0)
    sums = _retired_postings(connection, provider_payable(provider), utc)
    for booking in _retired_bookings(connection, provider, utc):
        day = booking.start_us // DAY_US
        pusd = booking.sure_pusd + booking.uncertain_pusd + booking.claimed_pusd
        sums[day] = sums.get(day, 0) - pusd
    return {day: pusd for day, pusd in sums.items() if pusd}


def _retired_postings(connection: Connection, account: str, days: _BillingDays) -> dict[int, int]:
    """Return the amount that retired attempts' entries owe on an account, by day since 1970."""
    day, entry = days.number(PostingRow.at_us), PostingRow.entry_id
    of_attempt = exists().where(AttemptRow.attempt_id == entry)
    query = (
        select(day, exact_sum(PostingRow.amount_pusd))
        .where(
            PostingRow.account == account,
            days.have(PostingRow.at_us),
            ~of_attempt,
            ~entry.startswith("invoice:"),
            ~entry.endswith(SUSPENSE),
        )
        .group_by(day)
    )
    sums = {int(number): -int(pusd) for number, pusd in connection.execute(query)}
    table = CondensedPostingRow
    compacted = select(table.day_us, table.amount_pusd).where(
        table.account == account, days.have(table.day_us)
    )
    for day_us, pusd in connection.execute(compacted):
        sums[day_us // DAY_US] = sums.get(day_us // DAY_US, 0) - pusd
    return sums


def _gpu_costs(connection: Connection, pool: str, days: _BillingDays) -> list[BookedCost]:
    day = days.number(GpuHourRow.hour_us)
    query = (
        select(day, exact_sum(GpuHourRow.bill_pusd), func.count())
        .where(GpuHourRow.pool == pool, days.have(GpuHourRow.hour_us))
        .group_by(day)
    )
    return [
        BookedCost(date_of(int(at)), pool, pool, bill, int(hours))
        for at, bill, hours in connection.execute(query)
    ]


def _adjusted_costs(connection: Connection, account: str, days: _BillingDays) -> list[BookedCost]:
    """Return the postings to an adjustment account: a provider's name, or `gpu:POOL`."""
    day = days.number(PostingRow.at_us)
    query = (
        select(day, exact_sum(PostingRow.amount_pusd))
        .where(PostingRow.account == adjustments(account), days.have(PostingRow.at_us))
        .group_by(day)
    )
    return [
        BookedCost(date_of(int(at)), ADJUSTED, ADJUSTED, pusd)
        for at, pusd in connection.execute(query)
    ]
