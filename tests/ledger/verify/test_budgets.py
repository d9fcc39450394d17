"""What windows, grants and holds say is recomputed; whatever was edited by hand is told."""

import pytest
from sqlalchemy import insert, text, update

from ledger.budgets.entered import BudgetSpec
from ledger.budgets.grants import BudgetAccount, GrantNeed, grow
from ledger.budgets.windows import window_at
from ledger.declared import declare
from ledger.journals.reader import JournalOffset
from ledger.journals.records import Hold
from ledger.orm import tables as orm
from ledger.verify.budgets import BUDGET_CHECKS
from ledger.writing.fold import JournalItem
from ledger.writing.repository import JournalMove, LedgerRepository

AT_US = 1_795_435_200_000_000  # 2026-11-24
MONTH = window_at("month", "UTC", AT_US // 10**6)
ANN = BudgetAccount("user:ann@month", MONTH.start_s)
TEAM = BudgetAccount("team:search@month", MONTH.start_s)


def say(engine, *limits: tuple[str, int], at_us: int, hard: bool = True) -> None:
    budgets = [
        BudgetSpec(scope, "month", pusd, hard=hard, timezone="UTC") for scope, pusd in limits
    ]
    declare(engine, contracts=(), budgets=budgets, config=("c", "c"), at_us=at_us)


@pytest.fixture
def books(engine, opened, settled):
    """A team's budget and everybody's default; two hosts, each with two attempts that settled."""
    say(engine, ("team:search", 10_000), ("user:*", 5_000), at_us=AT_US)
    for host, first in (("h", 1), ("g", 3)):
        grow(engine, host, [GrantNeed(item, 2_000, 1_000) for item in (TEAM, ANN)])
        holds = tuple(Hold(item.budget_id, item.window, 1_000) for item in (TEAM, ANN))
        records = [
            record
            for number in (first, first + 1)
            for record in (opened(number, holds=holds, opened_us=AT_US), settled(number))
        ]
        items = [
            JournalItem(f"{host}j", 1, place, b"", each_record)
            for place, each_record in enumerate(records)
        ]
        move = JournalMove(f"{host}j", "w", JournalOffset(0, 0), JournalOffset(1, 9))
        LedgerRepository(engine, host=host).apply(items, (move,), at_us=AT_US)
    return engine


def findings(engine) -> set[str]:
    with engine.connect() as connection:
        return {check.__name__ for check in BUDGET_CHECKS for _ in check(connection)}


def test_what_the_product_writes_is_sound(books) -> None:
    assert findings(books) == set()


@pytest.mark.parametrize(
    ("statement", "check"),
    [
        ("UPDATE budget_windows SET limit_pusd = '10001'", "windows_are_as_declared"),
        ("UPDATE budget_windows SET limit_pusd = NULL", "windows_are_as_declared"),
        ("UPDATE budget_windows SET budget_id = 'team:x@month' WHERE budget_id LIKE 'team%'",
         "windows_are_as_declared"),
        ('UPDATE budget_windows SET "window" = "window" + 1', "windows_are_as_declared"),
        ("UPDATE grants SET spent_pusd = '801' WHERE host = 'h'", "grants_are_spent"),
        ("UPDATE grants SET host = 'x' WHERE host = 'h'", "grants_are_spent"),
        ("UPDATE grants SET granted_pusd = '2001' WHERE host = 'h'", "grants_are_within_limits"),
        ("DELETE FROM grants WHERE host = 'h'", "grants_are_within_limits"),
        ("DELETE FROM budget_windows", "grants_are_within_limits"),
        ("UPDATE holds SET amount_pusd = 999 WHERE attempt_id = 'r1.1'", "holds_follow_attempts"),
        ("UPDATE holds SET state = 'voided' WHERE attempt_id = 'r1.1'", "holds_follow_attempts"),
        ("UPDATE holds SET attempt_id = 'r9.1' WHERE attempt_id = 'r1.1'", "holds_follow_attempts"),
    ],
)  # fmt: skip
def test_what_was_edited_is_told(books, statement, check) -> None:
    if books.dialect.name == "postgresql":
        for number in ("10001", "801", "2001"):
            statement = statement.replace(f"'{number}'", number)
    with books.begin() as connection:
        connection.execute(text(statement))
    assert check in findings(books)


def test_money_that_moves_from_host_to_host_by_hand_is_told(books) -> None:
    """Its sums are right: each host has settled what its journals say."""
    with books.begin() as connection:
        for host, pusd in (("h", 700), ("g", 900)):
            connection.execute(
                update(orm.GrantRow).where(orm.GrantRow.host == host).values(spent_pusd=pusd)
            )
    assert findings(books) == {"grants_are_spent"}


def test_a_limit_of_the_same_window_is_no_edit_and_one_of_long_ago_is(books) -> None:
    def window_says(pusd: int) -> set[str]:
        with books.begin() as connection:
            connection.execute(update(orm.BudgetWindowRow).values(limit_pusd=pusd))
        return findings(books)

    say(books, ("team:search", 7_000), ("user:*", 7_000), at_us=AT_US + 10**9)
    assert window_says(7_000) == set()
    later_us = (MONTH.end_s + 86_400) * 10**6
    say(books, ("team:search", 8_000), ("user:*", 8_000), at_us=later_us)
    assert window_says(8_000) == {"windows_are_as_declared"}, "it came after that window"


def test_a_clock_set_back_behind_the_first_version_is_no_edit(engine) -> None:
    """A host that starts with a clock ahead declares its budgets then, and goes on before that."""
    ahead_us = (MONTH.end_s + 40 * 86_400) * 10**6
    say(engine, ("team:search", 10_000), at_us=ahead_us)
    grow(engine, "h", [GrantNeed(TEAM, 1_000, 1_000)])
    assert findings(engine) == set()
    with engine.begin() as connection:
        connection.execute(update(orm.BudgetWindowRow).values(limit_pusd=10_001))
    assert findings(engine) == {"windows_are_as_declared"}


AHEAD_US = (MONTH.end_s + 40 * 86_400) * 10**6


@pytest.fixture
def window_says(engine):
    """Two limits, the second said by a clock that was ahead; the window is granted under any."""
    say(engine, ("team:search", 10_000), at_us=AT_US)
    say(engine, ("team:search", 11_000), at_us=AHEAD_US)
    grow(engine, "h", [GrantNeed(TEAM, 1_000, 1_000)])

    def edit(pusd: int) -> set[str]:
        with engine.begin() as connection:
            connection.execute(update(orm.BudgetWindowRow).values(limit_pusd=pusd))
        return findings(engine)

    return edit


def test_a_limit_said_by_a_clock_that_was_set_back_then_is_no_edit(
    engine, opened, settled, window_says
) -> None:
    """Red before: `verify` found an edit for good, where nobody had edited anything."""

    def answer(number: int, at_us: int) -> None:
        first = opened(number, holds=(), opened_us=at_us)
        records = (first, settled(number, settled_us=at_us))
        items = [JournalItem("j", 1, 2 * number + at, b"", what) for at, what in enumerate(records)]
        LedgerRepository(engine, host="h").apply(items, (), at_us=at_us)

    answer(1, AT_US + 1)
    assert window_says(11_000) == {"windows_are_as_declared"}, "nothing shows a clock ahead"
    answer(2, AHEAD_US + 1)
    assert window_says(11_000) == {"windows_are_as_declared"}, "it went on from there"
    answer(3, AT_US + 2)
    assert window_says(11_000) == set(), "the clock was set back"
    assert window_says(11_001) == {"windows_are_as_declared"}


def test_limits_said_behind_a_clock_that_was_ahead_are_no_edits(engine, window_says) -> None:
    """Versions follow each other in time: these have the time of the one before them."""
    for pusd in (12_000, 13_000):
        say(engine, ("team:search", pusd), at_us=AT_US + 5)
    assert [window_says(pusd) for pusd in (10_000, 11_000, 12_000, 13_000)] == [set()] * 4
    assert window_says(13_001) == {"windows_are_as_declared"}


def test_of_budgets_from_before_versions_no_limit_is_known(engine) -> None:
    """What they had been was written nowhere; their calendar is known."""
    row = {"id": TEAM.budget_id, "scope": "team:search", "period": "month", "limit_pusd": 9,
           "hard": True, "timezone": "UTC", "created_us": 5}  # fmt: skip
    window = {"budget_id": TEAM.budget_id, "window": MONTH.start_s, "spent_pusd": 0,
              "granted_pusd": 0, "limit_pusd": 77}  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.BudgetRow), [row])
        connection.execute(insert(orm.BudgetWindowRow), [window])
    say(engine, ("team:search", 9), at_us=AT_US)
    assert findings(engine) == set()


def test_what_was_taken_while_a_budget_only_counted_has_no_grant(engine, opened, settled) -> None:
    say(engine, ("team:search", 10_000), at_us=AT_US, hard=False)
    hold = (Hold(TEAM.budget_id, TEAM.window, 0),)
    first = opened(1, holds=hold, opened_us=AT_US)
    books = LedgerRepository(engine, host="h")
    books.apply([JournalItem("j", 1, 0, b"", first)], (), at_us=AT_US)
    say(engine, ("team:search", 10_000), at_us=AT_US + 1)
    grow(engine, "g", [GrantNeed(TEAM, 1_000, 1_000)])
    books.apply([JournalItem("j", 1, 1, b"", settled(1))], (), at_us=AT_US + 2)
    assert findings(engine) == set()
