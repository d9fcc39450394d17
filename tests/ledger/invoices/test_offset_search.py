"""An invoice whose days are not UTC's tells its zone, or claims that depend on it wait."""

from collections import defaultdict

import pytest
from retired_days import retire_before
from sqlalchemy import select

from ledger.budgets.open_claims import list_claims
from ledger.instants import date_of
from ledger.invoices.billed_claims import ZONE, wait_texts
from ledger.invoices.billing_days import billing_day
from ledger.invoices.books import (
    InvoiceStateError,
    PostingMode,
    find_invoice,
    post_invoice,
    store,
    zone_of,
)
from ledger.invoices.files import InvoiceFile, InvoiceLine
from ledger.invoices.offset_search import BillingZone, OffsetBasis
from ledger.orm import tables as orm
from ledger.spans import DAY_US

FIRST = 20_000
HOUR_US = DAY_US // 24
HOURS = [hour for hour in range(-24, 5 * 24) if hour % 24 not in (3, 4)]
CLAIM_HOUR, SURPLUS = 24 + 20, 300  # at 20:00 UTC of the second day
AHEAD = 480
LATER_US = (FIRST + 40) * DAY_US


def cost_at(hour: int) -> int:
    return 10 + (hour * hour * 37) % 997


@pytest.fixture
def days(engine, opened, settled, write):
    """Five days of uneven traffic, and one claim of which nothing is owed."""
    records = []
    for number, hour in enumerate(HOURS, 1):
        at_us = FIRST * DAY_US + hour * HOUR_US + HOUR_US // 2
        claim = {"claimed_pusd": cost_at(hour) + SURPLUS, "plausible_pusd": SURPLUS}
        end = settled(
            number, settled_us=at_us + 1, cost_pusd=cost_at(hour),
            **(claim if hour == CLAIM_HOUR else {}),
        )  # fmt: skip
        records += [opened(number, opened_us=at_us), end]
    write(engine, *records)
    with engine.connect() as connection:
        provider = connection.execute(select(orm.AttemptRow.provider)).scalars().first()
    return engine, provider


def bill(ahead: int, *, more: int = 0, first: int = 0, last: int = 3) -> InvoiceFile:
    """What an honest provider bills of its own days; `more` on the claim's day."""
    sums: dict[int, int] = defaultdict(int)
    for hour in HOURS:
        at_us = FIRST * DAY_US + hour * HOUR_US + HOUR_US // 2
        sums[billing_day(at_us, ahead)] += cost_at(hour)
        if hour == CLAIM_HOUR:
            sums[billing_day(at_us, ahead)] += more
    lines = [
        InvoiceLine(date_of(day), "gpt-4o-mini", sums[day])
        for day in range(FIRST + first, FIRST + last + 1)
    ]
    return InvoiceFile("csv", tuple(lines), 12, f"digest {ahead} {more} {first} {last}")


def changed_bill(before: int, after: int, at: int, *, more: int = 0) -> InvoiceFile:
    """The same of a provider whose clocks change in the night before the day `at`."""
    sums: dict[int, int] = defaultdict(int)
    change_us = (FIRST + at) * DAY_US - before * 60 * 10**6
    for hour in HOURS:
        at_us = FIRST * DAY_US + hour * HOUR_US + HOUR_US // 2
        day = billing_day(at_us, before if at_us < change_us else after)
        sums[day] += cost_at(hour) + (more if hour == CLAIM_HOUR else 0)
    lines = [InvoiceLine(date_of(day), "gpt-4o-mini", sums[day]) for day in range(FIRST, FIRST + 4)]
    return InvoiceFile("csv", tuple(lines), 12, f"digest {before} {after} {at} {more}")


@pytest.mark.parametrize("before", [-480, -300, 60, 480])
@pytest.mark.parametrize("ahead", [60, -60])
@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("more", [0, SURPLUS])
def test_a_claim_is_not_settled_wrongly_where_clocks_change(days, before, ahead, at, more) -> None:
    """Red before: no zone explained the bill, and its days were taken for UTC's."""
    number = kept(days, changed_bill(before, before + ahead, at, more=more))
    assert {before, before + ahead} <= {*zone(days, number).fitting}
    post_invoice(days[0], number, by="ben", at_us=LATER_US)
    assert claims(days) in ([("billed", more)], [(None, SURPLUS)])


def kept(days, file: InvoiceFile) -> int:
    engine, provider = days
    party = f"provider:{provider}"
    return store(engine, file, party=party, name="x.csv", by="ann", at_us=LATER_US)


def zone(days, number: int) -> BillingZone:
    with days[0].connect() as connection:
        return zone_of(connection, find_invoice(connection, number))


def claims(days) -> list[tuple[str | None, int]]:
    with days[0].connect() as connection:
        table = orm.ClaimRow
        return [*connection.execute(select(table.resolution, table.counted_pusd))]


@pytest.mark.parametrize("more", [0, SURPLUS, SURPLUS // 3])
def test_an_invoice_is_read_in_the_zone_that_alone_explains_it(days, more) -> None:
    """Red before: hours of the next day looked as if they paid the claim."""
    number = kept(days, bill(AHEAD, more=more))
    assert zone(days, number)[:2] == (OffsetBasis.FOUND, AHEAD)
    posted = post_invoice(days[0], number, by="ben", at_us=LATER_US)
    assert sum(posted.values()) == more - SURPLUS, "the claim is owed until then"
    assert len(posted) == (more != SURPLUS)
    assert zone(days, number)[:2] == (OffsetBasis.STATED, AHEAD)
    assert claims(days) == [("billed", more)]


def test_retired_attempts_tell_a_zone_as_others_do(days) -> None:
    number = kept(days, bill(AHEAD))
    retire_before(days[0], (FIRST + 6) * DAY_US)
    assert zone(days, number)[:2] == (OffsetBasis.FOUND, AHEAD)


def test_a_stated_zone_is_not_searched_for(days) -> None:
    """The control: read in UTC, what is billed of other hours pays a claim that is not owed."""
    number = kept(days, InvoiceFile("csv", bill(AHEAD).lines, 12, "stated", 0))
    assert zone(days, number) == BillingZone(OffsetBasis.STATED, 0)
    post_invoice(days[0], number, by="ben", at_us=LATER_US)
    assert claims(days) != [("billed", 0)]


def test_an_invoice_that_is_not_posted_takes_a_zone_that_was_stated_since(days) -> None:
    file = bill(AHEAD)
    number = kept(days, file)
    with pytest.raises(InvoiceStateError, match="imported already"):
        kept(days, file)
    stated = InvoiceFile("csv", file.lines, 12, file.digest, 60)
    assert kept(days, stated) == number
    assert zone(days, number) == BillingZone(OffsetBasis.STATED, 60)
    with pytest.raises(InvoiceStateError, match="imported already"):
        kept(days, stated)
    post_invoice(days[0], number, by="ben", at_us=LATER_US)
    with pytest.raises(InvoiceStateError, match="imported already"):
        kept(days, InvoiceFile("csv", file.lines, 12, file.digest, 120))


def test_a_claim_that_depends_on_the_zone_waits_for_it(engine, opened, settled, write) -> None:
    """Late in the night it is today, or tomorrow and one day from what is billed."""
    noon_us = FIRST * DAY_US + DAY_US // 2
    write(engine, opened(1, opened_us=noon_us), settled(1, settled_us=noon_us + 1, cost_pusd=50))
    late_us = (FIRST + 1) * DAY_US - HOUR_US // 2
    more = {"claimed_pusd": 60, "plausible_pusd": 60}
    end = settled(2, settled_us=late_us + 1, cost_pusd=0, **more)
    write(engine, opened(2, opened_us=late_us), end)
    with engine.connect() as connection:
        provider = connection.execute(select(orm.AttemptRow.provider)).scalars().first()
    held = engine, provider
    amounts = {FIRST - 1: 0, FIRST: 50, FIRST + 1: 0, FIRST + 2: 60, FIRST + 3: 0}
    lines = tuple(InvoiceLine(date_of(day), "m", pusd) for day, pusd in amounts.items())
    number = kept(held, InvoiceFile("csv", lines, 12, "few"))
    assert len(zone(held, number).fitting) > 1
    post_invoice(engine, number, by="ben", at_us=LATER_US, manner=PostingMode.WHOLE)
    with engine.connect() as connection:
        waits = wait_texts(connection, list_claims(connection, None, whole=True, limit=9))
    (claim,) = claims(held)
    assert claim == (None, 60)
    assert [*waits.values()] == [ZONE]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (BillingZone(OffsetBasis.STATED, 480), None),
        (BillingZone(OffsetBasis.FOUND, 0, (0,)), None),
        (BillingZone(OffsetBasis.UTC, 0, (0, 60)), None),
        (BillingZone(OffsetBasis.FOUND, 480, (480,)), "UTC+08:00, which alone explains it"),
        (BillingZone(OffsetBasis.UNKNOWN, 0, (60, 120)), "It fits UTC+01:00, UTC+02:00"),
        (BillingZone(OffsetBasis.UNKNOWN, 0), "in no other time zone"),
    ],
)
def test_what_is_not_known_of_a_zone_is_told(found, words) -> None:
    note = found._replace(provider="p").note
    assert (note is None) == (words is None)
    if note is not None:
        assert words in note
        assert "`providers.p.billing_utc_offset`" in note
