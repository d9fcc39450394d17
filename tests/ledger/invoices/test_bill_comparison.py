"""A bill is compared with what it is about: its days' books, or what its own posting added."""

from datetime import UTC, datetime

import pytest

from ledger.invoices.bill_comparison import BillComparison, compare_bill, dropped_note
from ledger.invoices.books import PostingMode, find_invoice, lines_of, post_invoice, store
from ledger.invoices.files import InvoiceFile, InvoiceLine
from ledger.invoices.reconcile import ADJUSTED, DifferenceCause, by_day_and_model
from ledger.writing.repository import LedgerRepository

NOON_US = 1_780_000_000_000_000
LATER_US = NOON_US + 2 * 86_400_000_000
DAY = datetime.fromtimestamp(NOON_US / 1e6, UTC).date()
CREDIT = -99


@pytest.fixture
def books(engine, opened, settled):
    """Two attempts of 400 on the day."""
    records = [opened(1), settled(1), opened(2), settled(2)]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=5)
    return engine


def kept(engine, pusd: int, party: str = "provider:openai") -> int:
    found = InvoiceFile("csv", (InvoiceLine(DAY, "gpt-4o-mini", pusd),), 12, f"{party}{pusd}")
    return store(engine, found, party=party, name="nov.csv", by="ana", at_us=9)


def posted(engine, number: int, manner: PostingMode = PostingMode.WHOLE, days: int = 0) -> int:
    post_invoice(engine, number, by="ben", at_us=LATER_US + days, manner=manner)
    return number


def compared(engine, number: int) -> tuple[BillComparison, int, set[DifferenceCause]]:
    """Return it, its difference and the causes that its rows are given."""
    with engine.connect() as connection:
        invoice = find_invoice(connection, number)
        found, lines = compare_bill(connection, invoice), lines_of(connection, number)
    rows = by_day_and_model(lines, found.booked, places=12).get(DAY, [])
    causes = {cause for row in rows for cause in row.causes}
    return found, invoice.total_pusd - sum(cost.booked_pusd for cost in found.booked), causes


def test_a_credit_note_that_was_added_is_compared_with_what_it_added(books) -> None:
    whole = posted(books, kept(books, 900))
    note = posted(books, kept(books, CREDIT), PostingMode.ADDS, days=1)
    found, difference, causes = compared(books, note)
    assert (difference, causes) == (0, {DifferenceCause.POSTED})
    assert [(cost.day, cost.model, cost.booked_pusd) for cost in found.booked] == [
        (DAY, ADJUSTED, CREDIT)
    ]
    assert found.note is not None
    assert "owed beside what the books have" in found.note
    assert "billing_utc_offset" not in found.note
    assert found.advice is None
    found, difference, causes = compared(books, whole)
    assert (difference, causes) == (0, {DifferenceCause.POSTED}), "what was added since is no debt"
    assert f"Bill {note}, which is owed beside it" in str(found.note)


def test_a_bill_that_replaces_still_counts_what_was_posted_before(books) -> None:
    first = posted(books, kept(books, 900))
    second = posted(books, kept(books, 870), PostingMode.REPLACES, days=1)
    assert compared(books, second)[1:] == (0, {DifferenceCause.POSTED})
    assert compared(books, first)[1] == 30, "the control: what corrects it is not a part beside it"


def test_a_correction_names_the_credit_notes_that_it_takes_the_place_of(books) -> None:
    def dropped(number: int) -> str | None:
        with books.connect() as connection:
            return dropped_note(connection, find_invoice(connection, number))

    posted(books, kept(books, 900))
    correction = kept(books, 870)
    assert dropped(correction) is None, "the control: the bill that it corrects is meant"
    note = posted(books, kept(books, CREDIT), PostingMode.ADDS, days=1)
    assert f"takes the place of bill {note}, added beside" in str(dropped(correction))
    posted(books, correction, PostingMode.REPLACES, days=2)
    assert compared(books, correction)[1] == 0


def test_the_advice_is_a_command_that_fits_the_bill(books) -> None:
    plain = kept(books, 900)
    assert compared(books, plain)[0].advice == f"`breakeven invoices post {plain}`"
    note = kept(books, CREDIT)
    told = compared(books, note)[0]
    assert str(told.advice).startswith(f"`breakeven invoices post {note} --adds`")
    assert "billing_utc_offset" not in str(told.note), "no time zone makes a credit note agree"
    posted(books, plain)
    part = kept(books, 30)
    advice = str(compared(books, part)[0].advice)
    assert f"breakeven invoices post {part} --adds" in advice
    assert f"--replaces` if it corrects bill {plain}" in advice


def test_another_partys_bill_is_none_of_its(books) -> None:
    whole = posted(books, kept(books, 900))
    posted(books, kept(books, CREDIT, "provider:other"), PostingMode.ADDS, days=1)
    assert compared(books, whole)[1] == 0
