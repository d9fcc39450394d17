"""What the books have of a day is the same before and after its attempts were retired."""

from collections import Counter
from datetime import date, timedelta

import pytest
from retired_days import compact_all, post_lines, retire_before
from sqlalchemy import delete, select, update

from ledger.accounts import provider_payable
from ledger.instants import day_number
from ledger.invoices.bookings import booked_costs, is_uncertain, provider_bookings
from ledger.invoices.books import PostingMode
from ledger.invoices.reconcile import RETIRED
from ledger.orm import tables as orm
from ledger.orm.types import exact_sum
from ledger.spans import DAY_US
from ledger.verify.checks import verify

DAY = date(2026, 5, 6)
NUMBER = day_number(DAY)
NOON = NUMBER * DAY_US + DAY_US // 2
HOUR_US = DAY_US // 24
LATER = NOON + 90 * DAY_US
BASES = ("reported", "estimated", "bound", "continuous")
PARTY = "provider:openai"


@pytest.fixture
def books(engine, opened, settled, write, seal_all):
    """Three days, an attempt each six hours: every basis, two models, two teams, claims."""
    for number in range(12):
        at_us = NOON - DAY_US - DAY_US // 2 + number * 6 * HOUR_US + 5
        claim = {"claimed_pusd": 500 + 7 * number, "plausible_pusd": 9} if number % 3 == 1 else {}
        write(
            engine,
            opened(
                number, opened_us=at_us - 1, upstream_model=f"m{number % 2}",
                team_id=("search", "support")[number % 4 // 2],
            ),
            settled(
                number, settled_us=at_us, cost_pusd=100 + number, basis=BASES[number % 4], **claim
            ),
        )  # fmt: skip
        if number == 5:
            seal_all(engine)
    # The last attempt of all stays, whatever its age: it is of another provider.
    write(engine, opened(99, opened_us=at_us, provider="x"), settled(99, settled_us=at_us + 1))
    seal_all(engine)
    return engine


def totals(engine, offset_min):
    """What is booked by day, model and team, and what of it is uncertain."""
    sums: Counter = Counter()
    with engine.connect() as connection:
        first, last = DAY - timedelta(days=1), DAY + timedelta(days=1)
        for cost in booked_costs(connection, PARTY, first, last, offset_min=offset_min):
            key = cost.day, cost.model, cost.project
            sums[*key, "booked"] += cost.booked_pusd
            sums[*key, "uncertain"] += cost.uncertain_pusd
            sums[*key, "attempts"] += cost.attempts
    return {key: count for key, count in sums.items() if count}


def by_day(engine):
    sums: Counter = Counter()
    for (day, _, _, what), pusd in totals(engine, 0).items():
        if what == "booked":
            sums[day] += pusd
    return sums


def matched(engine, offset_min):
    with engine.connect() as connection:
        sure, uncertain, _, unknown = provider_bookings(
            connection, "openai", [(NUMBER - 1, NUMBER), (NUMBER + 1, NUMBER + 2)], offset_min
        )
    return sure, uncertain, unknown


def owed(engine):
    with engine.connect() as connection:
        table = orm.PostingRow
        query = select(exact_sum(table.amount_pusd)).where(
            table.account == provider_payable("openai")
        )
        return -int(connection.execute(query).scalar_one())


@pytest.mark.parametrize("offset_min", [0, -480, 345])
def test_bookings_outlive_their_attempts(books, offset_min) -> None:
    before, before_matched = totals(books, offset_min), matched(books, offset_min)
    assert retire_before(books, NOON) == 6
    assert (totals(books, offset_min), matched(books, offset_min)) == (before, before_matched)
    assert retire_before(books, LATER) == 6
    assert compact_all(books) > 12
    assert (totals(books, offset_min), matched(books, offset_min)) == (before, before_matched)
    with books.connect() as connection:
        found = {finding.check for finding in verify(connection).findings}
    assert found <= {"costs_rederive"}  # there are no prices


def forget_sums(engine) -> None:
    """Leave what an earlier release kept of retired attempts."""
    with engine.begin() as connection:
        connection.execute(delete(orm.RetiredBookingRow))
        connection.execute(update(orm.RetirementRow).values(bookings=None))


@pytest.mark.parametrize("compacted", [False, True])
def test_attempts_that_an_earlier_release_retired_count_by_their_postings(books, compacted) -> None:
    before = by_day(books)
    assert retire_before(books, NOON) == 6
    forget_sums(books)
    if compacted:
        assert compact_all(books) > 0
    assert by_day(books) == before
    assert {model for _, model, _, _ in totals(books, 0)} == {RETIRED, "m0", "m1"}
    assert matched(books, 0)[2] == {NUMBER - 1, NUMBER}
    assert retire_before(books, LATER) == 6
    assert by_day(books) == before
    assert matched(books, 0)[2] == {NUMBER - 1, NUMBER}


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_a_bill_of_retired_days_is_owed_once(books, first, kept) -> None:
    """Red before: attempts alone were counted as booked, so that the bill was owed once more."""
    lines = [(day, pusd) for day, pusd in sorted(by_day(books).items())]
    manner = PostingMode.WHOLE
    if first:
        assert post_lines(books, "openai", lines, manner, at_us=LATER) == {}
        manner = PostingMode.REPLACES
    before = owed(books)
    assert before == sum(pusd for _, pusd in lines)
    assert retire_before(books, LATER) == 12
    if not kept:
        forget_sums(books)
    assert post_lines(books, "openai", lines, manner, at_us=LATER + 1) == {}
    assert owed(books) == before
    dearer = [(lines[0][0], lines[0][1] + 70), *lines[1:]]
    found = post_lines(books, "openai", dearer, PostingMode.REPLACES, at_us=LATER + 2)
    assert (found, owed(books)) == ({lines[0][0]: 70}, before + 70)


@pytest.mark.parametrize(
    ("basis", "status", "claimed", "uncertain"),
    [
        ("reported", "finished", False, False),
        ("estimated", "finished", False, True),
        ("bound", "client_gone", False, True),
        ("continuous", "finished", False, True),
        (None, "finished", False, True),  # red before: sure for one reader, uncertain for another
        ("reported", "lost", False, True),
        ("bound", "lost", False, True),
        ("bound", "finished", True, False),
        (None, "finished", True, False),
    ],
)
def test_one_condition_says_which_costs_are_uncertain(
    engine, opened, settled, write, basis, status, claimed, uncertain
) -> None:
    more = {"claimed_pusd": 500} if claimed else {}
    write(engine, opened(1), settled(1, settled_us=NOON, cost_pusd=100, **more))
    with engine.begin() as connection:
        connection.execute(update(orm.AttemptRow).values(basis=basis, status=status))
        attempt, claim = orm.AttemptRow, orm.ClaimRow
        query = select(is_uncertain()).select_from(attempt.__table__)
        joined = query.outerjoin(claim.__table__, claim.attempt_id == attempt.attempt_id)
        assert bool(connection.execute(joined).scalar_one()) is uncertain
        costs = booked_costs(connection, PARTY, DAY, DAY)
        sure, unsure, _, _ = provider_bookings(connection, "openai", [(NUMBER, NUMBER)], 0)
    surplus = 400 if claimed else 0
    assert sum(cost.uncertain_pusd + cost.lost_pusd for cost in costs) - surplus == (
        100 if uncertain else 0
    )
    assert [*(unsure if uncertain else sure).values()] == [100]
    assert not (sure if uncertain else unsure)
