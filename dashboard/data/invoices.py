"""Reads of imported invoices, and of adjustments posted for them."""

from dataclasses import dataclass

from sqlalchemy import Connection

from dashboard.data.reads import TTL_S, DashboardView, query
from dashboard.viewer import ViewerScope
from ledger.invoices import books as invoices
from ledger.invoices.adjusted import Adjustment, posted_adjustments
from ledger.invoices.bill_comparison import compare_bill
from ledger.invoices.bookings import PROVIDER
from ledger.invoices.files import InvoiceLine
from ledger.invoices.reconcile import BookedCost, map_projects
from ledger.manual_entries import project_teams
from ledger.queries.attempts import senders_of_bills
from ledger.spans import DAY_US, Scope

_US = 10**6


@dataclass(frozen=True, slots=True)
class InvoiceDetail:
    """An imported invoice with its lines and the booked costs of its days."""

    invoice: invoices.ImportedInvoice
    lines: tuple[InvoiceLine, ...]
    booked: tuple[BookedCost, ...]
    note: str | None = None
    advice: str | None = None


@query(ViewerScope.BOOKS, entries=4)
def bills(connection: Connection, _view: DashboardView) -> list[invoices.ImportedInvoice]:
    """Return every imported invoice, the latest first."""
    return invoices.list_invoices(connection)


@query(ViewerScope.BOOKS)
def senders(connection: Connection, _view: DashboardView, targets: tuple[str, ...]) -> list[str]:
    """Return the providers whose bills have these APIs."""
    return senders_of_bills(connection, targets)


@query(ViewerScope.BOOKS)
def bill(connection: Connection, view: DashboardView, number: int) -> InvoiceDetail:
    found = invoices.find_invoice(connection, number)
    teams = project_teams(connection, found.party.removeprefix(PROVIDER), view.now_us + TTL_S * _US)
    lines = map_projects(invoices.lines_of(connection, number), teams)
    compared = compare_bill(connection, found)
    return InvoiceDetail(found, tuple(lines), compared.booked, compared.note, compared.advice)


@query(ViewerScope.BOOKS)
def adjustments(connection: Connection, view: DashboardView) -> list[Adjustment]:
    """Return posted adjustments of all teams, by day and party."""
    last_us = view.scope.end_us - 1
    end_us = last_us - last_us % DAY_US + DAY_US  # a day's stand at its last instant
    scope = Scope(view.scope.start_us, end_us)
    return list(posted_adjustments(connection, scope, bucket_us=DAY_US))
