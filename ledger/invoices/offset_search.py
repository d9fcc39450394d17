"""Search for the time zone of an invoice's days, in the invoice and in the ledger.

It runs only if no zone is stated. Attempts count by the quarters of an hour in which they began and
ended, because a provider may bill either. For retired attempts, only the end is known.
"""

from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, case, func, or_, select

from ledger.invoices.billing_days import LEAST_MINUTES, MOST_MINUTES, day_start_us, offset_text
from ledger.invoices.billing_offset import BookedTime, FittingOffsets, fitting_offsets
from ledger.invoices.bookings import is_uncertain
from ledger.invoices.posted_bills import InvoiceSpan, invoice_amounts
from ledger.invoices.reconcile import model_of, rounding_pusd
from ledger.orm.books import AttemptRow, ClaimRow
from ledger.orm.seals import RetiredBookingRow
from ledger.orm.types import exact_sum

QUARTER_US = 15 * 60 * 1_000_000
_LONGEST_US = 60 * 60 * 1_000_000  # assumed maximum duration of a retired attempt


class OffsetBasis(StrEnum):
    """The source of an invoice's time zone."""

    STATED = "stated"  # by the configuration, or by the file's own instants
    FOUND = "found"  # the only zone that explains the invoice
    UTC = "utc"  # UTC explains the invoice; other zones may too
    UNKNOWN = "unknown"  # UTC does not explain the invoice


class BillingZone(NamedTuple):
    """The zone of an invoice's days. `fitting` are all offsets that explain the invoice.

    With `changes`, they are the offsets before and after a clock change on one of its days.
    """

    basis: OffsetBasis
    offset_min: int
    fitting: tuple[int, ...] = ()
    provider: str = ""
    changes: bool = False

    @property
    def note(self) -> str | None:
        """Return a note on the zone for people, `None` if the zone is stated or UTC."""
        setting = f"`providers.{self.provider}.billing_utc_offset`"
        if self.basis is OffsetBasis.FOUND and self.offset_min:
            found = offset_text(self.offset_min)
            return f"Its days are those of {found}, which alone explains it; {setting} is not set."
        if self.basis is not OffsetBasis.UNKNOWN:
            return None
        if self.changes:
            zones = ", ".join(offset_text(offset) for offset in self.fitting)
            return (
                f"No one time zone explains its days: clocks may have changed, between {zones}. "
                f"Its claims wait; set {setting} and import it again, or waive them."
            )
        if self.fitting:
            zones = ", ".join(offset_text(offset) for offset in self.fitting)
            return f"Its days are not UTC's. It fits {zones}: set {setting} and import it again."
        return (
            "Its days were compared as UTC's; in no other time zone do all of them agree with the "
            f"books either. If you know its zone, set {setting} and import it again."
        )


def find_zone(connection: Connection, invoice: InvoiceSpan) -> BillingZone:
    """Return the zone of a provider's invoice: the stated one, else the one that fits it."""
    if invoice.utc_offset_min is not None:
        return BillingZone(OffsetBasis.STATED, invoice.utc_offset_min)
    fitting, changes = _search(connection, invoice)
    if len(fitting) == 1:
        return BillingZone(OffsetBasis.FOUND, fitting[0], fitting, invoice.provider)
    basis = OffsetBasis.UTC if 0 in fitting and not changes else OffsetBasis.UNKNOWN
    return BillingZone(basis, 0, fitting, invoice.provider, changes)


def _search(connection: Connection, invoice: InvoiceSpan) -> FittingOffsets:
    """Return the offsets that fit the invoice."""
    amounts = invoice_amounts(connection, invoice.number)
    by_key: dict[tuple[int, str], int] = {}
    for amount in amounts:
        key = amount.day, model_of(amount.item)
        by_key[key] = by_key.get(key, 0) + 1
    rounding = rounding_pusd(invoice.places, max(by_key.values(), default=0))
    booked = _booked_times(connection, invoice)
    return fitting_offsets(amounts, (invoice.first, invoice.last), booked, rounding)


def _booked_times(connection: Connection, invoice: InvoiceSpan) -> list[BookedTime]:
    start_us = day_start_us(invoice.first, MOST_MINUTES)
    end_us = day_start_us(invoice.last + 1, LEAST_MINUTES)
    table = AttemptRow
    surplus = func.coalesce(ClaimRow.claimed_pusd - ClaimRow.booked_pusd, 0)
    cost = func.coalesce(table.cost_pusd, 0)
    begun, ended = _quarter(table.opened_us), _quarter(table.settled_us)
    query = (
        select(
            begun, ended, table.upstream_model,
            exact_sum(case((is_uncertain(), 0), else_=cost)),
            exact_sum(cost + surplus),
        )
        .outerjoin(ClaimRow, ClaimRow.attempt_id == table.attempt_id)
        .where(
            table.provider == invoice.provider,
            table.settled_us >= start_us,
            table.opened_us < end_us,
            or_(cost != 0, surplus != 0),
        )
        .group_by(begun, ended, table.upstream_model)
    )  # fmt: skip
    times = [
        BookedTime(
            int(first) * QUARTER_US, int(last) * QUARTER_US, model_of(model), *map(int, sums)
        )
        for first, last, model, *sums in connection.execute(query)
    ]
    return times + _retired_times(connection, invoice, start_us, end_us)


def _retired_times(
    connection: Connection, invoice: InvoiceSpan, start_us: int, end_us: int
) -> list[BookedTime]:
    table = RetiredBookingRow
    query = select(
        table.start_us, table.upstream_model,
        table.sure_pusd, table.uncertain_pusd, table.claimed_pusd,
    ).where(
        and_(
            table.provider == invoice.provider,
            table.start_us >= start_us,
            table.start_us < end_us,
        )
    )  # fmt: skip
    return [
        BookedTime(at - _LONGEST_US, at, model_of(model), sure, sure + uncertain + claimed)
        for at, model, sure, uncertain, claimed in connection.execute(query)
    ]


def _quarter(instant: Any) -> Any:
    return instant.op("/", precedence=8)(QUARTER_US)
