"""Posted invoices are read as bills: how they were posted, and which lines are one charge."""

import itertools
from datetime import date, timedelta

import pytest
from sqlalchemy import update

from ledger.instants import DAY_US, day_number
from ledger.invoices.books import PostingMode, post_invoice, store
from ledger.invoices.claim_matching import UnpostedBill
from ledger.invoices.files import InvoiceFile, InvoiceLine, parse
from ledger.invoices.posted_bills import read_bills
from ledger.orm.invoices import InvoiceItemRow

DAY = date(2026, 5, 6)
NUMBER = day_number(DAY)
NOON = NUMBER * DAY_US + DAY_US // 2
LATER = NOON + 60 * DAY_US
FILES = itertools.count(1)


def imported(engine, file, party="provider:openai"):
    return store(engine, file, party=party, name="x.csv", by="ann", at_us=LATER)


def posted(engine, amounts, manner=PostingMode.WHOLE):
    lines = [InvoiceLine(DAY + timedelta(days=ahead), "m", pusd) for ahead, pusd in amounts.items()]
    number = imported(engine, InvoiceFile("csv", tuple(lines), 12, f"d{next(FILES)}"))
    post_invoice(engine, number, by="ann", at_us=LATER + next(FILES), manner=manner)


def bills_in(engine):
    with engine.connect() as connection:
        return read_bills(connection, "openai")


@pytest.fixture
def books(engine, opened, settled, write):
    """One attempt of 50, that somebody else's invoice does not touch."""
    write(engine, opened(1, opened_us=NOON - 1), settled(1, settled_us=NOON, cost_pusd=50))
    imported(engine, InvoiceFile("csv", (InvoiceLine(DAY, "m", 7),), 12, "o"), "provider:other")
    return engine


def test_an_invoice_is_read_as_it_was_posted(books):
    whole, adds, replaces = PostingMode.WHOLE, PostingMode.ADDS, PostingMode.REPLACES
    posted(books, {0: 30}, adds)  # a part before any whole one
    posted(books, {-1: 0, 0: 20, 1: 0}, adds)
    posted(books, {0: -5}, adds)
    posted(books, {0: 90}, replaces)
    posted(books, {0: 90, 1: 0}, replaces)
    posted(books, {0: 50}, adds)
    posted(books, {3: 0, 4: 0}, whole)  # nothing was booked of these days: either way is right
    bills, unposted = bills_in(books)
    assert [bill.adds for bill in bills] == [True, True, True, False, False, True, True]
    assert [bill[:2] for bill in bills][1] == (NUMBER - 1, NUMBER + 1)
    assert [amount.pusd for amount in bills[1].amounts] == [0, 20, 0]
    assert unposted == []


def test_an_invoice_that_is_not_posted_is_known(books):
    lines = InvoiceLine(DAY, "m", 7), InvoiceLine(DAY + timedelta(days=2), "m", 7)
    number = imported(books, InvoiceFile("csv", lines, 12, "later"))
    assert bills_in(books) == ([], [UnpostedBill(number, NUMBER, NUMBER + 2)])


FOCUS = """BilledCost,ChargePeriodStart,ChargePeriodEnd,ResourceId,ConsumedQuantity,ConsumedUnit
0.000000000100,2026-05-06,2026-05-09,m,30,tokens
0.000000000007,2026-05-06,2026-05-07,m,3,tokens
0.000000000007,2026-05-07,2026-05-08,m,4,tokens
0.000000000010,2026-05-06,2026-05-07,fee,,
0.000000000010,2026-05-07,2026-05-08,fee,,
0.000000000010,2026-05-08,2026-05-09,fee,,
0.000000000004,2026-05-06T12:00:00Z,2026-05-08,part,,
"""


def focus_amounts(bill):
    return [
        (name, day - NUMBER, pusd, stretch and (stretch[0] - NUMBER, stretch[1] - NUMBER))
        for day, name, pusd, stretch in bill.amounts
    ]


SPREAD = [("m", 0, 34, (0, 2)), ("m", 1, 33, (0, 2)), ("m", 2, 33, (0, 2))]
METERED = [("m", 0, 7, None), ("m", 1, 7, None)]


def test_a_charge_of_several_days_stays_one_and_charges_of_days_stay_days(books):
    """Red before: equal daily fees were one charge, and a part of a day none of its charge."""
    post_invoice(books, imported(books, parse(FOCUS)), by="ann", at_us=LATER)
    (bill,), _ = bills_in(books)
    assert focus_amounts(bill) == [
        *SPREAD, *METERED, *(("fee", ahead, 10, None) for ahead in range(3)),
        ("part", 0, 1, (0, 1)), ("part", 1, 3, (0, 1)),
    ]  # fmt: skip


def test_charges_that_an_earlier_release_imported_follow_from_their_shares(books):
    post_invoice(books, imported(books, parse(FOCUS)), by="ann", at_us=LATER)
    with books.begin() as connection:
        connection.execute(update(InvoiceItemRow).values(charge=None))
    (bill,), _ = bills_in(books)
    assert focus_amounts(bill) == [
        *SPREAD, *METERED, *(("fee", ahead, 10, (0, 2)) for ahead in range(3)),
        ("part", 0, 1, None), ("part", 1, 3, None),
    ]  # fmt: skip


def test_equal_lines_of_other_formats_are_days(books):
    posted(books, {0: 7, 1: 7, 2: 7})
    (bill,), _ = bills_in(books)
    assert [amount.stretch for amount in bill.amounts] == [None, None, None]
