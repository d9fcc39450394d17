"""Invoices in the ledger: imported once, compared with bookings, posted on approval.

Posting adds one entry per day that brings the debt to the party to its invoice. The other side is
the account of adjustments, which is no team's expense. Past entries are not edited. Posting twice
changes nothing, because earlier adjustments count as booked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Engine, and_, insert, or_, select, update

from ledger.accounts import adjustments, gpu_payable, postings_for_invoice, provider_payable
from ledger.budgets.open_claims import BILLED, Resolution, serialize_claims
from ledger.fleet.hours import GRACE_US
from ledger.instants import day_number
from ledger.invoices.billed_claims import reconcile_claims
from ledger.invoices.billing_days import day_start_us, offset_text
from ledger.invoices.bookings import GPU, PROVIDER, booked_costs
from ledger.invoices.files import InvoiceFile, InvoiceLine
from ledger.invoices.invoice_entries import invoice_entry
from ledger.invoices.offset_search import BillingZone, OffsetBasis, find_zone
from ledger.invoices.posted_bills import InvoiceSpan
from ledger.orm.books import PostingRow
from ledger.orm.invoices import InvoiceItemRow, InvoiceRow
from ledger.posting_rows import posting_rows
from ledger.reporting_zone import reporting_zone
from ledger.spans import DAY_US


class InvoiceStateError(ValueError):
    """An operation that the invoice's state forbids; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class ImportedInvoice:
    """An imported invoice without its lines."""

    id: int
    party: str
    format: str
    name: str
    places: int
    first_day: date
    last_day: date
    total_pusd: int
    imported_us: int
    imported_by: str
    posted_us: int | None
    posted_by: str | None
    utc_offset_min: int | None = None

    @property
    def offset_min(self) -> int:
        """Return the minutes by which its days are ahead of UTC."""
        return self.utc_offset_min or 0

    @property
    def is_credit(self) -> bool:
        """Return whether the total is below zero, so that it cannot be only its days' requests."""
        return self.total_pusd < 0


def store(engine: Engine, found: InvoiceFile, *, party: str, name: str, by: str, at_us: int) -> int:
    """Store an invoice and return its number. Raises `InvoiceStateError` for a known file.

    If the known invoice is not posted and the time zone is newly stated, the zone is updated
    instead.
    """
    digest, table = f"{party} {found.digest}", InvoiceRow
    days = [line.day for line in found.lines]
    with engine.begin() as connection:
        known = select(table.id).where(table.digest == digest)
        before = connection.execute(known).scalar_one_or_none()
        if before is not None:
            other = or_(table.utc_offset_min.is_(None), table.utc_offset_min != found.offset_min)
            where = and_(table.id == before, table.posted_us.is_(None), other)
            zone = update(table).where(where).values(utc_offset_min=found.offset_min)
            if found.offset_min is not None and connection.execute(zone).rowcount:
                return int(before)
            raise InvoiceStateError(f"this file was imported already, as invoice {before}")
        row = {
            "party": party, "format": found.format, "name": name, "digest": digest,
            "places": found.places, "first_day": min(days), "last_day": max(days),
            "total_pusd": found.total_pusd, "imported_us": at_us, "imported_by": by,
            "utc_offset_min": found.offset_min,
        }  # fmt: skip
        made = connection.execute(insert(InvoiceRow).returning(InvoiceRow.id), row)
        number = int(made.scalar_one())
        connection.execute(insert(InvoiceItemRow), [_item(number, line) for line in found.lines])
    return number


def list_invoices(connection: Connection) -> list[ImportedInvoice]:
    """Return every imported invoice, newest first."""
    return [
        _invoice_of_row(row) for row in connection.execute(_SELECT.order_by(InvoiceRow.id.desc()))
    ]


def find_invoice(connection: Connection, number: int) -> ImportedInvoice:
    row = connection.execute(_SELECT.where(InvoiceRow.id == number)).one_or_none()
    if row is None:
        raise InvoiceStateError(
            f"there is no invoice {number}; `breakeven invoices list` shows all"
        )
    return _invoice_of_row(row)


def lines_of(connection: Connection, number: int) -> list[InvoiceLine]:
    table = InvoiceItemRow
    query = (
        select(table.day, table.item, table.amount_pusd, table.project, table.quantity, table.unit)
        .where(table.invoice_id == number)
        .order_by(table.id)
    )
    return [
        InvoiceLine(day, item, pusd, project, None if count is None else Decimal(count), unit)
        for day, item, pusd, project, count, unit in connection.execute(query)
    ]


def zone_of(connection: Connection, invoice: ImportedInvoice) -> BillingZone:
    """Return the time zone of the invoice's days; UTC for a cloud's invoice."""
    if not invoice.party.startswith(PROVIDER):
        return BillingZone(OffsetBasis.STATED, 0)
    first, last = day_number(invoice.first_day), day_number(invoice.last_day)
    provider = invoice.party.removeprefix(PROVIDER)
    span = InvoiceSpan(invoice.id, provider, first, last, invoice.places, invoice.utc_offset_min)
    return find_zone(connection, span)


class PostingMode(StrEnum):
    """The relation of an invoice to the bookings of its days."""

    WHOLE = "whole"  # it states the total for its days
    REPLACES = "replaces"  # it states the total, and replaces a posted invoice of these days
    ADDS = "adds"  # it is owed in addition to the bookings: a part, a credit note


def overlapping_invoices(connection: Connection, invoice: ImportedInvoice) -> list[int]:
    """Return posted invoices of the same party for some of the same days."""
    table = InvoiceRow
    query = select(table.id).where(
        table.party == invoice.party,
        table.id != invoice.id,
        table.posted_us.is_not(None),
        table.first_day <= invoice.last_day,
        table.last_day >= invoice.first_day,
    )
    return list(connection.execute(query.order_by(table.id)).scalars())


def posting_differences(
    connection: Connection, invoice: ImportedInvoice, manner: PostingMode
) -> dict[date, int]:
    """Return the debt that posting adds, by day of the invoice's zone (`zone_of`).

    Raises `InvoiceStateError` if an overlapping invoice makes the mode ambiguous.
    """
    others = overlapping_invoices(connection, invoice)
    if others and manner is PostingMode.WHOLE:
        raise InvoiceStateError(
            f"invoice {others[0]} was posted for some of the same days: say --adds if both are "
            "owed (a part, a credit note), or --replaces if this one corrects it"
        )
    found: dict[date, int] = {}
    for line in lines_of(connection, invoice.id):
        found[line.day] = found.get(line.day, 0) + line.amount_pusd
    if manner is not PostingMode.ADDS:
        for booking in booked_costs(
            connection, invoice.party, invoice.first_day, invoice.last_day,
            offset_min=zone_of(connection, invoice).offset_min,
        ):  # fmt: skip
            found[booking.day] = found.get(booking.day, 0) - booking.booked_pusd
    return {day: pusd for day, pusd in found.items() if pusd}


def post_invoice(
    engine: Engine, number: int, *, by: str, at_us: int, manner: PostingMode = PostingMode.WHOLE
) -> dict[date, int]:
    """Post an invoice. Return the amounts posted by day.

    An entry stands at the last instant of its date in UTC and in the reporting time zone: reports
    of either have it on that date.

    Its days must be over, and late settles and the last hour's close be in the books: what came to
    them afterwards would be owed twice.
    """
    with engine.begin() as connection:
        serialize_claims(connection)  # two concurrent postings would each miss the other
        taken = connection.execute(
            update(InvoiceRow)
            .where(InvoiceRow.id == number, InvoiceRow.posted_us.is_(None))
            .values(posted_us=at_us, posted_by=by)
        )
        invoice = find_invoice(connection, number)
        if manner is not PostingMode.ADDS:
            invoice = _with_found_zone(connection, invoice)
        if not taken.rowcount:
            raise InvoiceStateError(f"invoice {number} was posted by {invoice.posted_by}")
        if at_us < postable_us(invoice):
            raise InvoiceStateError(too_early_text(invoice))
        posted = posting_differences(connection, invoice, manner)
        accounts = adjustments(_account(invoice.party)), _owed_to(invoice.party)
        zone = reporting_zone(connection)
        rows = [
            row
            for day, pusd in sorted(posted.items())
            for row in posting_rows(
                invoice_entry(number, day),
                min(_us(day) + DAY_US, zone.day(zone.midnight_us(day))[1]) - 1,
                postings_for_invoice(*accounts, booked_pusd=0, invoiced_pusd=pusd),
            )
        ]
        if rows:
            connection.execute(insert(PostingRow), rows)
        if invoice.party.startswith(PROVIDER):
            provider = invoice.party.removeprefix(PROVIDER)
            reconcile_claims(connection, provider, Resolution(BILLED, at_us, by))
    return posted


def _with_found_zone(connection: Connection, invoice: ImportedInvoice) -> ImportedInvoice:
    """Store the zone that the invoice itself shows, so that results from it do not change."""
    zone = zone_of(connection, invoice)
    if zone.basis is not OffsetBasis.FOUND:
        return invoice
    where = InvoiceRow.id == invoice.id
    connection.execute(update(InvoiceRow).where(where).values(utc_offset_min=zone.offset_min))
    return replace(invoice, utc_offset_min=zone.offset_min)


def postable_us(invoice: ImportedInvoice) -> int:
    """Return the time from which it can be posted: its days are over and late settles booked."""
    end_us = day_start_us(day_number(invoice.last_day) + 1, invoice.offset_min)
    return max(_us(invoice.last_day) + DAY_US, end_us) + 2 * GRACE_US


def too_early_text(invoice: ImportedInvoice) -> str:
    zone = offset_text(invoice.offset_min)
    return (
        f"invoice {invoice.id} goes to {invoice.last_day}, a day ({zone}) that is not over: what "
        "the books get until then would be owed twice. Post it the day after, or import "
        "an invoice of the days until then"
    )


def _owed_to(party: str) -> str:
    if party.startswith(GPU):
        return gpu_payable(party.removeprefix(GPU))
    return provider_payable(party.removeprefix(PROVIDER))


def _account(party: str) -> str:
    """Return the name in the adjustment account: a provider's bare name, or `gpu:POOL`."""
    return party.removeprefix(PROVIDER)


def _item(number: int, line: InvoiceLine) -> dict[str, Any]:
    return {
        "invoice_id": number,
        "day": line.day,
        "item": line.item,
        "project": line.project,
        "amount_pusd": line.amount_pusd,
        "quantity": None if line.quantity is None else f"{line.quantity:f}",
        "unit": line.unit,
        "charge": line.charge,
    }


def _us(day: date) -> int:
    return day_number(day) * DAY_US


_FIELDS: Sequence[str] = tuple(ImportedInvoice.__dataclass_fields__)
_SELECT = select(*(getattr(InvoiceRow, name) for name in _FIELDS))


def _invoice_of_row(row: Any) -> ImportedInvoice:
    return ImportedInvoice(*row)
