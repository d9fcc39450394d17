"""Postings that nothing in the books explains are found, however well they balance."""

from datetime import date

import pytest
from sqlalchemy import insert

from ledger.invoices.books import post_invoice, store
from ledger.invoices.files import InvoiceFile, InvoiceLine
from ledger.orm import tables as orm
from ledger.verify.entries import entries_have_a_cause
from ledger.writing.repository import LedgerRepository

NOON_US = 1_780_000_000_000_000
LATER_US = NOON_US + 20 * 86_400_000_000


def findings(engine):
    with engine.connect() as connection:
        return [subject for subject, _ in entries_have_a_cause(connection)]


@pytest.fixture
def books(books_of_each):
    """With a lost attempt and a posted invoice."""
    LedgerRepository(books_of_each, host="h").settle_lost("j", at_us=NOON_US)
    day = date(2026, 6, 1)
    found = InvoiceFile("csv", (InvoiceLine(day, "m", 5),), 2, "d")
    number = store(books_of_each, found, party="provider:openai", name="f", by="a", at_us=1)
    post_invoice(books_of_each, number, by="a", at_us=LATER_US)
    return books_of_each


def test_everything_that_is_posted_has_its_cause(books):
    assert findings(books) == []


@pytest.mark.parametrize(
    "entry",
    ["adj:evil", "invoice:77:2026-06-01", "gpu:chat:7200000000", "gpu:other:3600000000",
     "r99.1", "r99.1:suspense"],
)  # fmt: skip
def test_what_has_none_is_found(books, entry):
    with books.begin() as connection:
        connection.execute(
            insert(orm.PostingRow),
            [{"entry_id": entry, "line": line, "at_us": 0, "account": "x", "amount_pusd": pusd}
             for line, pusd in enumerate((1, -1))],
        )  # fmt: skip
    assert findings(books) == [entry]


def test_an_invoice_that_was_never_posted_is_no_cause(books):
    found = InvoiceFile("csv", (), 2, "e")
    with books.begin() as connection:
        connection.execute(
            insert(orm.InvoiceRow),
            [{"id": 9, "party": "provider:openai", "format": found.format, "name": "f",
              "digest": "e", "places": 2, "first_day": date(2026, 6, 1),
              "last_day": date(2026, 6, 1), "total_pusd": 0,
              "imported_us": 0, "imported_by": "a"}],
        )  # fmt: skip
        connection.execute(
            insert(orm.PostingRow),
            [{"entry_id": "invoice:9:2026-06-01", "line": 0, "at_us": 0, "account": "x",
              "amount_pusd": 0}],
        )  # fmt: skip
    assert findings(books) == ["invoice:9:2026-06-01"]
