"""An invoice is imported once, compared with the books, and posted once, to the unit."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert, select

from ledger.fleet.hours import GRACE_US
from ledger.invoices.adjusted import adjusted_by_day
from ledger.invoices.bookings import booked_costs
from ledger.invoices.books import (
    InvoiceStateError,
    PostingMode,
    find_invoice,
    lines_of,
    list_invoices,
    post_invoice,
    store,
)
from ledger.invoices.files import InvoiceFile, InvoiceLine
from ledger.invoices.posted_bills import known_offset
from ledger.invoices.reconcile import DifferenceCause, by_day_and_model
from ledger.orm import tables as orm
from ledger.orm.types import exact_sum
from ledger.reporting_zone import ReportingZone, declare_zone
from ledger.spans import DAY_US, EVER
from ledger.verify.checks import verify
from ledger.writing.fold import JournalItem
from ledger.writing.repository import LedgerRepository

NOON_US = 1_780_000_000_000_000
LATER_US = NOON_US + 2 * 86_400_000_000
DAY = datetime.fromtimestamp(NOON_US / 1e6, UTC).date()


def invoice(*amounts, item="gpt-4o-mini, input", places=12, digest="d"):
    return InvoiceFile(
        "csv", tuple(InvoiceLine(DAY, item, amount) for amount in amounts), places, digest
    )


def kept(engine, found, party="provider:openai"):
    return store(engine, found, party=party, name="nov.csv", by="ana", at_us=9)


@pytest.fixture
def books(engine, opened, settled):
    """Two attempts of 400, one of them by an estimate, one lost at its bound."""
    records = [
        opened(1), settled(1), opened(2), settled(2, basis="estimated", status="client_gone"),
        opened(3, bound_pusd=70),
    ]  # fmt: skip
    items = [JournalItem("j", 1, place, b"", record) for place, record in enumerate(records)]
    repository = LedgerRepository(engine, host="h")
    repository.apply(items, (), at_us=5)
    repository.settle_lost("j", at_us=NOON_US + 5)
    return engine


def owed(engine, account="payable:provider:openai"):
    with engine.connect() as connection:
        query = select(exact_sum(orm.PostingRow.amount_pusd)).where(
            orm.PostingRow.account == account
        )
        return -connection.execute(query).scalar_one()


def test_a_file_is_kept_as_it_is_and_once(books):
    number = kept(books, invoice(500, 300))
    with books.connect() as connection:
        assert [line.amount_pusd for line in lines_of(connection, number)] == [500, 300]
        (item,) = list_invoices(connection)
        assert (item.id, item.party, item.total_pusd, item.imported_by, item.posted_us) == (
            number, "provider:openai", 800, "ana", None,
        )  # fmt: skip
        with pytest.raises(InvoiceStateError, match="there is no invoice 99"):
            find_invoice(connection, 99)
    with pytest.raises(InvoiceStateError, match=f"as invoice {number}"):
        kept(books, invoice(500, 300))
    assert kept(books, invoice(500, 300), party="provider:other") > number


def test_the_books_say_what_is_uncertain_in_them(books):
    with books.connect() as connection:
        (item,) = booked_costs(connection, "provider:openai", DAY, DAY)
    assert (item.booked_pusd, item.attempts) == (870, 3)
    assert (item.uncertain_pusd, item.uncertain, item.lost_pusd, item.lost) == (400, 1, 70, 1)
    (row,) = by_day_and_model(invoice(500).lines, [item], places=12)[DAY]
    assert row.difference_pusd == -370
    assert row.causes == (DifferenceCause.CANCELLED, DifferenceCause.LOST)


@pytest.mark.parametrize("invoiced", [500, 870, 1000])
def test_posting_brings_what_is_owed_to_the_invoice(books, invoiced):
    number = kept(books, invoice(invoiced))
    posted = post_invoice(books, number, by="ben", at_us=LATER_US)
    assert posted == ({DAY: invoiced - 870} if invoiced != 870 else {})
    assert owed(books) == invoiced
    assert owed(books, "adjustments:openai") == -(invoiced - 870)
    with books.connect() as connection:
        assert find_invoice(connection, number).posted_by == "ben"
        assert "postings_balance" not in {finding.check for finding in verify(connection).findings}
    with pytest.raises(InvoiceStateError, match="posted by ben"):
        post_invoice(books, number, by="eve", at_us=LATER_US)
    assert owed(books) == invoiced


@pytest.mark.parametrize(
    "name",
    ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York", "Pacific/Kiritimati",
     "Etc/GMT+12"],
)  # fmt: skip
def test_what_a_bill_differs_by_is_of_its_date_in_any_time_zone(books, name):
    """Red before: east of UTC it was of the day after, and a month's last day of the next month."""
    with books.begin() as connection:
        declare_zone(connection, name, 1)
    number = kept(books, invoice(1000))
    post_invoice(books, number, by="ben", at_us=LATER_US)
    zone, again = ReportingZone(name), ReportingZone()
    with books.connect() as connection:
        for days in (zone, again):
            found = adjusted_by_day(connection, EVER, days)
            assert found == {days.midnight_us(DAY): 1000 - 870}
        (_, adjusted) = booked_costs(connection, "provider:openai", DAY, DAY)
    assert (adjusted.day, adjusted.booked_pusd) == (DAY, 1000 - 870)


def test_a_corrected_invoice_counts_what_was_adjusted_before(books):
    post_invoice(books, kept(books, invoice(1000)), by="ben", at_us=LATER_US)
    again = kept(books, invoice(990, digest="e"))
    with pytest.raises(InvoiceStateError, match="--adds"):
        post_invoice(books, again, by="ben", at_us=LATER_US)
    assert owed(books) == 1000
    assert post_invoice(books, again, by="ben", at_us=LATER_US, manner=PostingMode.REPLACES) == {
        DAY: -10
    }
    assert owed(books) == 990


def test_a_credit_note_and_a_part_are_owed_beside_what_is_there(books):
    note = kept(books, invoice(-50))
    assert post_invoice(books, note, by="ben", at_us=LATER_US, manner=PostingMode.ADDS) == {
        DAY: -50
    }
    assert owed(books) == 870 - 50
    part = kept(books, invoice(30, digest="e"))
    assert post_invoice(books, part, by="ben", at_us=LATER_US, manner=PostingMode.ADDS) == {DAY: 30}
    assert owed(books) == 870 - 20


def test_a_cloud_bill_is_compared_with_the_hours_of_its_pool(engine):
    hour = {
        "pool": "chat", "contract_id": 1, "replicas": 1, "used_pusd": 10, "idle_pusd": 20,
        "unavailable_pusd": 0, "busy_us": 1, "unavailable_us": 0, "closed_us": 9, "bill_pusd": 30,
        "correction": 0, "span_us": 3_600_000_000,
    }  # fmt: skip
    start = NOON_US // 86_400_000_000 * 86_400_000_000
    with engine.begin() as connection:
        connection.execute(
            insert(orm.GpuHourRow), [hour | {"hour_us": start + n * 3_600_000_000} for n in (0, 23)]
        )
    number = kept(engine, invoice(64, item="vm-1"), party="gpu:chat")
    with engine.connect() as connection:
        (item,) = booked_costs(connection, "gpu:chat", DAY, DAY)
    assert (item.booked_pusd, item.attempts) == (60, 2)
    assert post_invoice(engine, number, by="ben", at_us=LATER_US) == {DAY: 4}
    assert owed(engine, "payable:gpu:chat") == 4
    assert owed(engine, "adjustments:gpu:chat") == -4


def test_of_two_who_post_at_once_one_does(books):
    number = kept(books, invoice(1000))
    post_invoice(books, number, by="ben", at_us=LATER_US)
    before = owed(books)
    with pytest.raises(InvoiceStateError):
        post_invoice(books, number, by="ana", at_us=LATER_US)
    assert owed(books) == before


@pytest.mark.parametrize(("offset_min", "ahead"), [(0, 0), (213, 0), (214, 1), (-720, 0)])
def test_a_bill_in_a_providers_own_days_is_compared_in_them(books, offset_min, ahead):
    """Its traffic was at 20:26 UTC."""
    day = DAY + timedelta(days=ahead)
    found = replace(invoice(1000), offset_min=offset_min)
    found = replace(found, lines=tuple(replace(line, day=day) for line in found.lines))
    number = kept(books, found)
    with books.connect() as connection:
        stored = find_invoice(connection, number)
        assert (stored.offset_min, list_invoices(connection)[0]) == (offset_min, stored)
        (item,) = booked_costs(connection, stored.party, day, day, offset_min=offset_min)
        assert (item.day, item.booked_pusd) == (day, 870)
        assert known_offset(connection, "openai") is None
    end_us = NOON_US - NOON_US % DAY_US + (1 + ahead) * DAY_US
    ends_us = max(end_us, end_us - offset_min * 60_000_000)
    with pytest.raises(InvoiceStateError, match="not over"):
        post_invoice(books, number, by="ben", at_us=ends_us + 2 * GRACE_US - 1)
    assert post_invoice(books, number, by="ben", at_us=ends_us + 2 * GRACE_US) == {day: 130}
    assert owed(books) == 1000
    with books.connect() as connection:
        assert known_offset(connection, "openai") == offset_min


def test_days_that_are_not_over_wait_for_their_last_settles(books):
    number = kept(books, invoice(1000))
    over_us = int(datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC).timestamp()) * 10**6
    over_us += 86_400_000_000
    for at_us in (NOON_US, over_us - 1, over_us + 60_000_000):
        with pytest.raises(InvoiceStateError, match=f"goes to {DAY}, a day .UTC. that is not over"):
            post_invoice(books, number, by="ben", at_us=at_us)
    with books.connect() as connection:
        assert find_invoice(connection, number).posted_us is None
    assert post_invoice(books, number, by="ben", at_us=over_us + 240_000_000)[DAY]
