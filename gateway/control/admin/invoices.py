"""Operations of `breakeven invoices`: provider and cloud bills, next to the ledger."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from gateway.auth import APPLY, INVOICES
from gateway.config.billing_accounts import sender_of_bills
from gateway.control.admin.verb import (
    NUMBER_LIMIT,
    NoInput,
    OperationContext,
    OperationRefused,
    list_document,
    verb,
)
from ledger.invoices import books as invoices
from ledger.invoices.bill_comparison import compare_bill, dropped_note
from ledger.invoices.billing_days import offset_minutes
from ledger.invoices.bookings import GPU, PROVIDER, booked_costs
from ledger.invoices.books import ImportedInvoice, PostingMode
from ledger.invoices.files import FORMATS, InvoiceError, InvoiceLine, parse
from ledger.invoices.offset_search import BillingZone
from ledger.invoices.reconcile import (
    BookedCost,
    ReconciliationLine,
    by_day_and_model,
    by_key,
    map_projects,
    model_of,
)
from ledger.manual_entries import project_teams

if TYPE_CHECKING:
    from gateway.config.settings import Settings

LARGEST = 16 * 1024 * 1024  # bytes of a body
By = Literal["day", "model", "project"]
_Number = Annotated[int, msgspec.Meta(ge=1, le=NUMBER_LIMIT, description="as the list has it")]
KEYS: dict[By, tuple[Callable[[InvoiceLine], str], Callable[[BookedCost], str]]] = {
    "model": (lambda line: model_of(line.item), lambda cost: model_of(cost.model)),
    "project": (lambda line: line.project or "", lambda cost: cost.project),
}


class ImportInvoiceInput(msgspec.Struct, forbid_unknown_fields=True):
    content: Annotated[str, msgspec.Meta(description="OpenAI's costs as JSON, a CSV, or FOCUS")]
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200, description="the file's")]
    provider: Annotated[str, msgspec.Meta(description="that sent it")] | None = None
    pool: Annotated[str, msgspec.Meta(description="whose GPUs it is for")] | None = None
    format: (
        Annotated[str, msgspec.Meta(description=f"{', '.join(FORMATS)}; told from it")] | None
    ) = None


class CompareInvoiceInput(msgspec.Struct, forbid_unknown_fields=True):
    invoice: _Number
    by: By = "day"
    projects: Annotated[
        dict[str, str], msgspec.Meta(description="teams by project, over those entered")
    ] = {}


class PostInvoiceInput(msgspec.Struct, forbid_unknown_fields=True):
    invoice: _Number
    manner: Annotated[
        Literal["whole", "replaces", "adds"],
        msgspec.Meta(description="adds: owed beside the books; replaces: corrects another"),
    ] = "whole"
    look: Annotated[bool, msgspec.Meta(description="only say what it would add, by day")] = False


@verb(
    "GET /invoices",
    INVOICES,
    "invoices list",
    "Every imported invoice, the latest first",
    NoInput,
)
def invoices_list(place: OperationContext, _: NoInput) -> dict[str, Any]:
    with place.ledger.connect() as connection:
        return list_document(
            msgspec.to_builtins([asdict(row) for row in invoices.list_invoices(connection)])
        )


@verb(
    "POST /invoices/import",
    INVOICES + APPLY,
    "invoices import",
    "Read an invoice; it is beside the books until it is posted",
    ImportInvoiceInput,
    largest=LARGEST,
)
def invoices_import(place: OperationContext, given: ImportInvoiceInput) -> dict[str, Any]:
    party = _party(place.settings, given.provider, given.pool)
    account = sender_of_bills(place.settings, given.provider or "")
    if given.format is not None and given.format not in FORMATS:
        words = f"there is no format `{given.format}`; there are {', '.join(FORMATS)}"
        raise OperationRefused(words, param="format")
    try:
        found = parse(given.content, given.format)
    except InvoiceError as error:
        words = f"{given.name} is not an invoice that can be read; nothing was imported\n{error}"
        raise OperationRefused(words, param="content") from error
    if given.provider not in (None, account) and not _has_bookings(place, party, found.lines):
        words = (
            f"the requests of `{given.provider}` are on the bills of `{account}` "
            f"(`providers.{given.provider}.billed_with`): import it with --provider {account}"
        )
        raise OperationRefused(words, param="provider")
    if found.format == "focus":  # its charges have timestamps
        found = replace(found, offset_min=0)
    elif given.provider is not None:
        offset = place.settings.providers[given.provider].billing_utc_offset
        if offset is not None:
            found = replace(found, offset_min=offset_minutes(offset))
    number = invoices.store(
        place.ledger, found, party=party, name=given.name, by=place.by, at_us=place.now_us
    )
    return {"invoice": number, "lines": len(found.lines), "total_pusd": found.total_pusd}


@verb(
    "POST /invoices/compare",
    INVOICES,
    "invoices show",
    "What differs from the books, where, and what explains it",
    CompareInvoiceInput,
)
def invoices_compare(place: OperationContext, given: CompareInvoiceInput) -> dict[str, Any]:
    with place.ledger.connect() as connection:
        invoice = invoices.find_invoice(connection, given.invoice)
        provider = invoice.party.removeprefix(PROVIDER)
        known = project_teams(connection, provider, place.now_us)
        lines = map_projects(
            invoices.lines_of(connection, given.invoice), {**known, **given.projects}
        )
        compared = compare_bill(connection, invoice)
    if invoice.party.startswith(GPU):  # cloud resources are not models: days are compared
        lines = [replace(line, item=invoice.party.removeprefix(GPU)) for line in lines]
    rows = [_line_document(*row) for row in _rows(invoice, lines, list(compared.booked), given.by)]
    found: dict[str, Any] = msgspec.to_builtins(
        {
            "invoice": asdict(invoice),
            "by": given.by,
            "rows": rows,
            "zone": _zone_document(compared.zone) | {"note": compared.note},
            "advice": compared.advice,
        }
    )
    return found


@verb(
    "POST /invoices/post",
    INVOICES + APPLY,
    "invoices post",
    "Bring the books to an invoice by adjustments, one a day",
    PostInvoiceInput,
)
def invoices_post(place: OperationContext, given: PostInvoiceInput) -> dict[str, Any]:
    manner, number = PostingMode(given.manner), given.invoice
    with place.ledger.connect() as connection:
        invoice = invoices.find_invoice(connection, number)
    if invoice.is_credit and invoice.posted_us is None and manner is not PostingMode.ADDS:
        words = (
            f"invoice {number} is below zero, a credit note: post it with --adds (manner `adds`), "
            "as it is owed beside what the books have; of a credit note that was wrong, import "
            "and add the difference"
        )
        raise OperationRefused(words, param="manner")
    if given.look:
        with place.ledger.connect() as connection:
            days = invoices.posting_differences(connection, invoice, manner)
            zone = invoices.zone_of(connection, invoice)
            dropped = dropped_note(connection, invoice)
        found: dict[str, Any] = msgspec.to_builtins(asdict(invoice))
        told = _zone_document(zone)
        if manner is PostingMode.ADDS:  # amounts owed outside the ledger have no time zone
            told["note"] = dropped = None
        seen = {"invoice": number, "posted_pusd": _by_day(days), "of": found, "zone": told}
        seen["dropped"] = dropped
        if place.now_us >= invoices.postable_us(invoice):
            return seen
        until_us = invoices.postable_us(invoice)
        return {**seen, "waits": {"until_us": until_us, "why": invoices.too_early_text(invoice)}}
    days = invoices.post_invoice(
        place.ledger, number, by=place.by, at_us=place.now_us, manner=manner
    )
    return {"invoice": number, "posted_pusd": _by_day(days)}


def _zone_document(zone: BillingZone) -> dict[str, Any]:
    return {"utc_offset_min": zone.offset_min, "basis": zone.basis.value, "note": zone.note}


def _by_day(days: dict[date, int]) -> dict[str, int]:
    return {str(day): pusd for day, pusd in days.items()}


def _has_bookings(place: OperationContext, party: str, lines: Sequence[InvoiceLine]) -> bool:
    """Return whether costs of the invoice's days were booked before the account was shared."""
    days = [line.day for line in lines]
    with place.ledger.connect() as connection:
        return bool(booked_costs(connection, party, min(days), max(days)))


def _party(settings: "Settings", provider: str | None, pool: str | None) -> str:
    if (provider is None) == (pool is None):
        raise OperationRefused(
            "name the sender of the invoice: --provider NAME, or --pool NAME for GPUs"
        )
    if provider is not None:
        if provider not in settings.providers:
            words = f"there is no provider `{provider}` in the configuration"
            raise OperationRefused(words, param="provider")
        return f"{PROVIDER}{provider}"
    if pool not in settings.pools:
        raise OperationRefused(
            f"the configuration has no pool `{pool}`: name one of `pools`", param="pool"
        )
    return f"{GPU}{pool}"


def _rows(
    invoice: ImportedInvoice, lines: list[InvoiceLine], booked: list[BookedCost], by: By
) -> list[tuple[str, ReconciliationLine]]:
    if by in KEYS:
        return [("", row) for row in by_key(lines, booked, KEYS[by])]
    days = by_day_and_model(lines, booked, places=invoice.places)
    return [(str(day), row) for day, rows in days.items() for row in rows]


def _line_document(day: str, row: ReconciliationLine) -> dict[str, Any]:
    told = asdict(row) | {"difference_pusd": row.difference_pusd}
    return {"day": day, **told} if day else told


VERBS = (invoices_list, invoices_compare, invoices_import, invoices_post)
