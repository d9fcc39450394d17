"""Comparison of an invoice with the ledger: what to compare with, notes, and how to post.

A bill that states the total for its days is compared with the ledger of these days. A bill posted
in addition (a part, a credit note) is compared with the amounts that its posting added. Bills of
the same days that were posted earlier leave out those amounts.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from ledger.instants import date_of, day_number
from ledger.invoices.bookings import PROVIDER, booked_costs
from ledger.invoices.books import ImportedInvoice, find_invoice, overlapping_invoices, zone_of
from ledger.invoices.invoice_entries import is_added
from ledger.invoices.offset_search import BillingZone, OffsetBasis
from ledger.invoices.posted_bills import posted_differences
from ledger.invoices.reconcile import ADJUSTED, BookedCost
from ledger.orm.invoices import InvoiceItemRow

ADDED_NOTE = (
    "It was posted as owed beside what the books have of its days (--adds): it is compared with "
    "what its posting added."
)


@dataclass(frozen=True, slots=True)
class BillComparison:
    """The data for a comparison.

    `advice` is the command that posts the bill, in backticks, and the reason; `None` after posting.
    """

    booked: tuple[BookedCost, ...]
    zone: BillingZone
    note: str | None
    advice: str | None


def compare_bill(connection: Connection, invoice: ImportedInvoice) -> BillComparison:
    """Return the bookings to compare an invoice with, and notes on them."""
    others = overlapping_invoices(connection, invoice)
    if invoice.posted_us is None:
        zone = _own_zone(invoice) if invoice.is_credit else zone_of(connection, invoice)
        advice = _advice(invoice, others)
        return BillComparison(_booked(connection, invoice, zone), zone, zone.note, advice)
    differences = posted_differences(connection, invoice.party.removeprefix(PROVIDER))
    mine = differences.get(invoice.id, {})
    if is_added(_lines_by_day(connection, invoice.id), mine):
        return BillComparison(_adjusted(mine), _own_zone(invoice), ADDED_NOTE, None)
    zone = zone_of(connection, invoice)
    booked, beside = _booked(connection, invoice, zone), []
    first, last = day_number(invoice.first_day), day_number(invoice.last_day)
    for number in others:
        posted_us = find_invoice(connection, number).posted_us or 0
        changed = differences.get(number, {})
        is_later = (posted_us, number) > (invoice.posted_us, invoice.id)
        if is_later and is_added(_lines_by_day(connection, number), changed):
            inside = {day: -pusd for day, pusd in changed.items() if first <= day <= last}
            booked += _adjusted(inside)
            beside.append(number)
    return BillComparison(booked, zone, zone.note or _beside_note(beside), None)


def dropped_note(connection: Connection, invoice: ImportedInvoice) -> str | None:
    """Return a sentence on the credit notes and parts that a replacing bill supersedes.

    `None` if there are none, or if the only other bill is the one that it corrects.
    """
    differences = posted_differences(connection, invoice.party.removeprefix(PROVIDER))
    others = overlapping_invoices(connection, invoice)
    added = [
        number
        for number in others
        if (changed := differences.get(number))
        and is_added(_lines_by_day(connection, number), changed)
    ]
    if not added or len(others) == 1:
        return None
    named = f"bill{'' if len(added) == 1 else 's'} {', '.join(map(str, added))}"
    return (
        f"It also takes the place of {named}, added beside the books of its days: what is still "
        "owed or given back of that is to be added again."
    )


def _booked(
    connection: Connection, invoice: ImportedInvoice, zone: BillingZone
) -> tuple[BookedCost, ...]:
    days = invoice.first_day, invoice.last_day
    return tuple(booked_costs(connection, invoice.party, *days, offset_min=zone.offset_min))


def _adjusted(days: Mapping[int, int]) -> tuple[BookedCost, ...]:
    return tuple(
        BookedCost(date_of(day), ADJUSTED, ADJUSTED, pusd) for day, pusd in sorted(days.items())
    )


def _own_zone(invoice: ImportedInvoice) -> BillingZone:
    """Return the zone of a bill that is not about its days' requests, so no zone explains it."""
    return BillingZone(OffsetBasis.STATED, invoice.offset_min)


def _lines_by_day(connection: Connection, number: int) -> dict[int, int]:
    table = InvoiceItemRow
    sums: dict[int, int] = defaultdict(int)
    query = select(table.day, table.amount_pusd).where(table.invoice_id == number)
    for day, pusd in connection.execute(query):
        sums[day_number(day)] += int(pusd)
    return sums


def _beside_note(numbers: list[int]) -> str | None:
    if not numbers:
        return None
    named = ", ".join(map(str, numbers))
    one = len(numbers) == 1
    return (
        f"Bill{'' if one else 's'} {named}, which {'is' if one else 'are'} owed beside it, "
        f"{'was' if one else 'were'} posted since: what that added is not compared here."
    )


def _advice(invoice: ImportedInvoice, others: list[int]) -> str:
    command = f"`breakeven invoices post {invoice.id}"
    if invoice.is_credit:
        return f"{command} --adds`; below zero it is a credit note, owed beside what the books have"
    if not others:
        return f"{command}`"
    bills = f"bill{'' if len(others) == 1 else 's'} {', '.join(map(str, others))}"
    return (
        f"{command} --adds` if it is owed beside {bills}, "
        f"{command} --replaces` if it corrects {bills}"
    )
