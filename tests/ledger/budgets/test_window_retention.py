"""Old windows that a default made go into its own: bounded, with the sums that verify compares."""

import time
from datetime import UTC, datetime

import pytest
from sqlalchemy import insert, select, update

from ledger.budgets import window_retention
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.window_retention import fold_windows
from ledger.budgets.windows import window_at
from ledger.declared import declare
from ledger.orm import tables as orm
from ledger.verify.budgets import BUDGET_CHECKS

DAY_S = 86_400
AT_US = int(datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp()) * 10**6
NOW_US = AT_US + 80 * DAY_S * 10**6
DAY = window_at("day", "UTC", AT_US // 10**6).end_s  # the day after the budgets were declared
LIMIT = 1_000


@pytest.fixture
def books(engine):
    budgets = (
        BudgetSpec("tag:run=*", "day", LIMIT, hard=True, timezone="UTC"),
        BudgetSpec("user:*", "day", LIMIT, hard=True, timezone="UTC"),
        BudgetSpec("user:cat", "day", LIMIT, hard=True, timezone="UTC"),
    )
    declare(engine, contracts=(), budgets=budgets, config=("c", "c"), at_us=AT_US)
    return engine


def spend(engine, account: str, pusd: int, *, start: int = DAY, retired: bool = True) -> None:
    """A window that one host spent in, as the writer and retirement leave it."""
    key = {"budget_id": f"{account}@day", "window": start}
    money = {"spent_pusd": pusd, "granted_pusd": max(pusd, 400)}
    with engine.begin() as connection:
        window = {**key, **money, "claimed_pusd": 0, "limit_pusd": LIMIT}
        connection.execute(insert(orm.BudgetWindowRow), [window])
        connection.execute(insert(orm.GrantRow), [{**key, **money, "host": "h"}])
        gone = {**key, "holds": 2, "actual_pusd": pusd if retired else pusd - 1}
        connection.execute(insert(orm.RetiredHoldsRow), [gone])


def windows(engine) -> dict[str, int]:
    columns = (orm.BudgetWindowRow.budget_id, orm.BudgetWindowRow.spent_pusd)
    of_days = orm.BudgetWindowRow.window >= DAY
    with engine.connect() as connection:
        rows = connection.execute(select(*columns).where(of_days))
        return {row[0].removesuffix("@day"): row[1] for row in rows}


def faults(engine) -> list:
    with engine.connect() as connection:
        return [item for check in BUDGET_CHECKS for item in check(connection)]


@pytest.mark.each_database
def test_a_thousand_runs_become_one_window_with_their_sums(books, monkeypatch) -> None:
    """Red before: windows of values stayed for good."""
    monkeypatch.setattr(window_retention, "AT_ONCE", 7)
    for number in range(20):
        spend(books, f"tag:run={number}", number * 50)
    spend(books, "user:ann", 70)
    spend(books, "user:cat", 50)
    spend(books, "tag:run=young", 5, start=DAY + 60 * DAY_S)
    before = faults(books)
    rounds = 0
    while fold_windows(books, before_us=NOW_US - 35 * DAY_S * 10**6):
        rounds += 1
    assert rounds == 3
    assert windows(books) == {
        "tag:run=*": 9_500, "user:*": 70, "user:cat": 50, "tag:run=young": 5
    }  # fmt: skip
    assert before == [] == faults(books)
    with books.connect() as connection:
        gone = connection.execute(select(orm.RetiredHoldsRow.budget_id, orm.RetiredHoldsRow.holds))
        assert dict(map(tuple, gone))["tag:run=*@day"] == 40


def test_what_attempts_or_claims_still_stand_in_stays(books) -> None:
    spend(books, "tag:run=open", 10, retired=False)
    spend(books, "tag:run=claimed", 10)
    spend(books, "tag:run=unused", 0)
    with books.begin() as connection:
        claimed = orm.BudgetWindowRow.budget_id == "tag:run=claimed@day"
        connection.execute(update(orm.BudgetWindowRow).where(claimed).values(claimed_pusd=3))
    assert fold_windows(books, before_us=NOW_US) == 1
    assert windows(books) == {"tag:run=open": 10, "tag:run=claimed": 10}


@pytest.mark.each_database
def test_a_hosts_clock_that_is_ahead_forgets_no_grant_of_others(books) -> None:
    """Red before: a second host was granted the limit once more."""
    spend(books, "user:eve", 0, start=window_at("day", "UTC", int(time.time())).start_s)
    ahead_us = time.time_ns() // 1000 + 100 * DAY_S * 10**6
    shared = books.dialect.name == "postgresql"
    assert fold_windows(books, before_us=ahead_us) == (0 if shared else 1)


def test_what_no_default_was_declared_for_is_left_to_verify(books) -> None:
    spend(books, "tag:other=1", 0)
    assert fold_windows(books, before_us=NOW_US) == 0
    assert any("no such budget was ever declared" in words for _, words in faults(books))
