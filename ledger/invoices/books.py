"""Invoices in the books: imported once, compared with what was booked, posted on approval.

Posting adds one entry a day that brings what is owed to the party to what it invoiced; the other
side is the account of adjustments, on nobody's expense. Nothing of the past is edited, and posting
twice changes nothing: what was adjusted before counts as booked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    and_,
    case,
    func,
    insert,
    literal_column,
    select,
    update,
)

from ledger.accounts import adjustments, gpu_payable, postings_for_invoice, provider_payable
from ledger.budgets.open_claims import BILLED, Resolution, serialize_claims
from ledger.fleet.hours import GRACE_US
from ledger.instants import date_of, day_number
from ledger.invoices.billed_claims import UNCERTAIN, reconcile_claims
from ledger.invoices.billing_days import day_column, day_start_us, offset_text
from ledger.invoices.files import InvoiceFile, InvoiceLine
from ledger.invoices.invoice_entries import invoice_entry
from ledger.invoices.reconcile import ADJUSTED, BookedCost
from ledger.orm.books import AttemptRow, ClaimRow, PostingRow
from ledger.orm.fleet import GpuHourRow
from ledger.orm.invoices import InvoiceItemRow, InvoiceRow
from ledger.orm.types import exact_sum
from ledger.posting_rows import posting_rows
from ledger.spans import DAY_US
from ledger.writing.rows import LOST

PROVIDER, GPU = "provider:", "gpu:"


class InvoiceStateError(ValueError):
    """What was asked cannot be done with this invoice; the message says why."""


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
        """Minutes by which its days are ahead of UTC's."""
        return self.utc_offset_min or 0


def store(engine: Engine, found: InvoiceFile, *, party: str, name: str, by: str, at_us: int) -> int:
    """Keep an invoice; the same file of the same party is refused. Returns its number."""
    digest = f"{party} {found.digest}"
    days = [line.day for line in found.lines]
    with engine.begin() as connection:
        known = select(InvoiceRow.id).where(InvoiceRow.digest == digest)
        before = connection.execute(known).scalar_one_or_none()
        if before is not None:
            raise InvoiceStateError(f"this file was imported already, as invoice {before}")
        row = {
            "party": party, "format": found.format, "name": name, "digest": digest,
            "places": found.places, "first_day": min(days), "last_day": max(days),
            "total_pusd": found.total_pusd, "imported_us": at_us, "imported_by": by,
            "utc_offset_min": found.offset_min or None,
        }  # fmt: skip
        made = connection.execute(insert(InvoiceRow).returning(InvoiceRow.id), row)
        number = int(made.scalar_one())
        connection.execute(insert(InvoiceItemRow), [_item(number, line) for line in found.lines])
    return number


def list_invoices(connection: Connection) -> list[ImportedInvoice]:
    """Every imported invoice, the latest first."""
    return [
        _invoice_of_row(row) for row in connection.execute(_SELECT.order_by(InvoiceRow.id.desc()))
    ]


def find_invoice(connection: Connection, number: int) -> ImportedInvoice:
    row = connection.execute(_SELECT.where(InvoiceRow.id == number)).one_or_none()
    if row is None:
        raise InvoiceStateError(f"there is no invoice {number}; `breakeven invoices list`")
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


def booked_costs(
    connection: Connection, party: str, first: date, last: date, *, offset_min: int = 0
) -> list[BookedCost]:
    """What the books have of a party from the first day to the last, both included.

    `offset_min`: minutes by which a provider's days are ahead of UTC's.
    """
    span = _us(first), _us(last + timedelta(days=1))
    if party.startswith(GPU):
        found = _gpu_costs(connection, party.removeprefix(GPU), span)
    else:
        provider, days = party.removeprefix(PROVIDER), _BillingDays(first, last, offset_min)
        found = _attempt_costs(connection, provider, days) + _claimed(connection, provider, days)
    return found + _adjusted_costs(connection, party, span)


class PostingMode(StrEnum):
    """How an invoice stands to what the books have of its days."""

    WHOLE = "whole"  # it says all that is owed for them
    REPLACES = "replaces"  # the same, although another one of these days was posted
    ADDS = "adds"  # it is owed beside what the books have: a part, a credit note


def overlapping_invoices(connection: Connection, invoice: ImportedInvoice) -> list[int]:
    """Invoices of the same party that were posted for some of the same days."""
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
    """What posting it adds to what is owed, by day. Refuses to guess between two invoices."""
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
            offset_min=invoice.offset_min,
        ):  # fmt: skip
            found[booking.day] = found.get(booking.day, 0) - booking.booked_pusd
    return {day: pusd for day, pusd in found.items() if pusd}


def post_invoice(
    engine: Engine, number: int, *, by: str, at_us: int, manner: PostingMode = PostingMode.WHOLE
) -> dict[date, int]:
    """Bring the books to the invoice; returns what was posted by day.

    Its days must be over, and late settles and the last hour's close be in the books: what came to
    them afterwards would be owed twice.
    """
    with engine.begin() as connection:
        serialize_claims(connection)  # two parts at once would each miss the other
        taken = connection.execute(
            update(InvoiceRow)
            .where(InvoiceRow.id == number, InvoiceRow.posted_us.is_(None))
            .values(posted_us=at_us, posted_by=by)
        )
        invoice = find_invoice(connection, number)
        if not taken.rowcount:
            raise InvoiceStateError(f"invoice {number} was posted by {invoice.posted_by}")
        if at_us < postable_us(invoice):
            raise InvoiceStateError(too_early_text(invoice))
        posted = posting_differences(connection, invoice, manner)
        accounts = adjustments(_account(invoice.party)), _owed_to(invoice.party)
        rows = [
            row
            for day, pusd in sorted(posted.items())
            for row in posting_rows(
                invoice_entry(number, day),
                _us(day) + DAY_US - 1,
                postings_for_invoice(*accounts, booked_pusd=0, invoiced_pusd=pusd),
            )
        ]
        if rows:
            connection.execute(insert(PostingRow), rows)
        if invoice.party.startswith(PROVIDER):
            provider = invoice.party.removeprefix(PROVIDER)
            reconcile_claims(connection, provider, Resolution(BILLED, at_us, by))
    return posted


def postable_us(invoice: ImportedInvoice) -> int:
    """From when on it can be posted: its days are over, and what settled late is in the books."""
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
    """A provider's adjustments carry its bare name, a pool's say that they are for GPUs."""
    return party.removeprefix(PROVIDER)


class _BillingDays(NamedTuple):
    first: date
    last: date
    offset_min: int

    def number(self, instant: Any) -> ColumnElement[int]:
        return day_column(instant, self.offset_min)

    def have(self, instant: Any) -> ColumnElement[bool]:
        start_us = day_start_us(day_number(self.first), self.offset_min)
        end_us = day_start_us(day_number(self.last) + 1, self.offset_min)
        return and_(instant >= start_us, instant < end_us)


def _attempt_costs(connection: Connection, provider: str, days: _BillingDays) -> list[BookedCost]:
    day = days.number(AttemptRow.settled_us)
    lost, sure = AttemptRow.status == LOST, AttemptRow.status != LOST
    uncertain = sure & AttemptRow.basis.in_(UNCERTAIN)
    failed = sure & (AttemptRow.status == "upstream_error") & (AttemptRow.cost_pusd == 0)
    query = (
        select(
            day, AttemptRow.upstream_model, AttemptRow.team_id,
            exact_sum(func.coalesce(AttemptRow.cost_pusd, 0)), func.count(),
            exact_sum(case((uncertain, func.coalesce(AttemptRow.cost_pusd, 0)), else_=0)),
            func.sum(case((uncertain, 1), else_=0)),
            exact_sum(case((lost, func.coalesce(AttemptRow.cost_pusd, 0)), else_=0)),
            func.sum(case((lost, 1), else_=0)),
            func.sum(case((failed, 1), else_=0)),
            func.sum(case((sure & AttemptRow.cost_pusd.is_(None), 1), else_=0)),
        )
        .where(AttemptRow.provider == provider, days.have(AttemptRow.settled_us))
        .group_by(day, AttemptRow.upstream_model, AttemptRow.team_id)
    )  # fmt: skip
    return [
        BookedCost(date_of(int(at)), model, team, cost, *map(int, counts))
        for at, model, team, cost, *counts in connection.execute(query)
    ]


def _claimed(connection: Connection, provider: str, days: _BillingDays) -> list[BookedCost]:
    """Return what the provider claims of attempts beyond their cost, which it may bill."""
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


def _gpu_costs(connection: Connection, pool: str, span: tuple[int, int]) -> list[BookedCost]:
    day = GpuHourRow.hour_us.op("/")(literal_column(str(DAY_US)))
    query = (
        select(day, exact_sum(GpuHourRow.bill_pusd), func.count())
        .where(GpuHourRow.pool == pool, GpuHourRow.hour_us >= span[0], GpuHourRow.hour_us < span[1])
        .group_by(day)
    )
    return [
        BookedCost(date_of(int(at)), pool, pool, bill, int(hours))
        for at, bill, hours in connection.execute(query)
    ]


def _adjusted_costs(connection: Connection, party: str, span: tuple[int, int]) -> list[BookedCost]:
    day = PostingRow.at_us.op("/")(literal_column(str(DAY_US)))
    query = (
        select(day, exact_sum(PostingRow.amount_pusd))
        .where(
            PostingRow.account == adjustments(_account(party)),
            PostingRow.at_us >= span[0],
            PostingRow.at_us < span[1],
        )
        .group_by(day)
    )
    return [
        BookedCost(date_of(int(at)), ADJUSTED, ADJUSTED, pusd)
        for at, pusd in connection.execute(query)
    ]


def _item(number: int, line: InvoiceLine) -> dict[str, Any]:
    return {
        "invoice_id": number,
        "day": line.day,
        "item": line.item,
        "project": line.project,
        "amount_pusd": line.amount_pusd,
        "quantity": None if line.quantity is None else f"{line.quantity:f}",
        "unit": line.unit,
    }


def _us(day: date) -> int:
    return day_number(day) * DAY_US


_FIELDS: Sequence[str] = tuple(ImportedInvoice.__dataclass_fields__)
_SELECT = select(*(getattr(InvoiceRow, name) for name in _FIELDS))


def _invoice_of_row(row: Any) -> ImportedInvoice:
    return ImportedInvoice(*row)
