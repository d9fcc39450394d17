"""Money under what is out at providers: held by a holder that outlives every process."""

import pytest
from sqlalchemy import insert, text

from ledger.budgets.batch_escrow import AT_PROVIDERS, BatchEscrow, held_amounts, release_grants
from ledger.budgets.grants import BudgetAccount, GrantNeed, budgets, grow
from ledger.orm import tables as orm
from ledger.writing.fold import JournalItem
from ledger.writing.repository import LedgerRepository

NOON_US = 1_780_000_000_000_000
TEAM, ALL = "team:search@month", "global@month"


@pytest.fixture
def limited(engine):
    """Two hard budgets and a soft one."""
    rows = [
        {"id": TEAM, "scope": "team:search", "limit_pusd": 1000, "hard": True},
        {"id": ALL, "scope": "global", "limit_pusd": 1500, "hard": True},
        {"id": "key:k1@month", "scope": "key:k1", "limit_pusd": 1, "hard": False},
    ]
    with engine.begin() as connection:
        common = {"period": "month", "timezone": "UTC", "created_us": 0}
        connection.execute(insert(orm.BudgetRow), [{**row, **common} for row in rows])
    return engine


def taken(engine, *bounds: int, scopes=("team:search", "global", "key:k1")):
    lines = budgets(engine)
    with engine.begin() as connection:
        purse = BatchEscrow(connection, lines, NOON_US)
        purse.lock([(scopes, 0)])
        found = [purse.hold(scopes, bound) for bound in bounds]
        purse.close()
    return found


def granted(engine) -> dict[str, int]:
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT budget_id, granted_pusd FROM grants"))
        return {row[0]: int(row[1]) for row in rows if int(row[1])}


def test_a_bound_is_held_on_every_hard_budget_or_on_none(limited) -> None:
    first, second, third = taken(limited, 600, 600, 400)
    assert {(item.scope, item.amount_pusd) for item in first} == {
        (TEAM, 600), (ALL, 600), ("key:k1@month", 0),
    }  # fmt: skip
    assert second is None
    assert third is not None
    assert granted(limited) == {TEAM: 1000, ALL: 1000}
    assert taken(limited, 1) == [None]


def test_what_hosts_were_granted_is_not_there(limited) -> None:
    (first,) = taken(limited, 10)
    account = BudgetAccount(TEAM, next(item.window for item in first if item.scope == TEAM))
    grow(limited, "host", [GrantNeed(account, 900, 900)])
    assert taken(limited, 200) == [None]
    assert taken(limited, 90) != [None]


def test_after_a_settle_the_grant_is_what_was_spent(limited, opened, settled) -> None:
    (holds,) = taken(limited, 600)
    books = LedgerRepository(limited, host=AT_PROVIDERS)
    record = opened(1, holds=holds, bound_pusd=600)
    with limited.begin() as connection:
        books.apply_within(connection, [JournalItem("j", 0, 0, b"", record)], (), at_us=5)
    with limited.begin() as connection:
        before = held_amounts(connection, ["r1.1"])
        assert set(before.values()) == {600}
        done = [JournalItem("j", 0, 1, b"", settled(1, cost_pusd=250))]
        applied = books.apply_within(connection, done, (), at_us=6)
        spent = {BudgetAccount(key[1], key[2]): pusd for key, pusd in applied.spent.items()}
        release_grants(connection, before, spent)
    assert granted(limited) == {TEAM: 250, ALL: 250}
    with limited.begin() as connection:
        assert held_amounts(connection, ["r1.1"]) == {}


def test_a_dearer_settle_raises_the_grant(limited, opened, settled) -> None:
    (holds,) = taken(limited, 600)
    books = LedgerRepository(limited, host=AT_PROVIDERS)
    with limited.begin() as connection:
        items = [JournalItem("j", 0, 0, b"", opened(1, holds=holds, bound_pusd=600))]
        books.apply_within(connection, items, (), at_us=5)
        before = held_amounts(connection, ["r1.1"])
        items = [JournalItem("j", 0, 1, b"", settled(1, cost_pusd=700))]
        applied = books.apply_within(connection, items, (), at_us=6)
        spent = {BudgetAccount(key[1], key[2]): pusd for key, pusd in applied.spent.items()}
        release_grants(connection, before, spent)
    assert granted(limited) == {TEAM: 700, ALL: 700}


def test_a_default_is_held_for_each_by_itself(limited) -> None:
    row = {"id": "user:*@month", "scope": "user:*", "period": "month", "limit_pusd": 500,
           "hard": True, "timezone": "UTC", "created_us": 0}  # fmt: skip
    with limited.begin() as connection:
        connection.execute(insert(orm.BudgetRow), [row])
    first, second = taken(limited, 300, 300, scopes=("user:ann",))
    assert [item.scope for item in first] == ["user:ann@month"]
    assert second is None
    assert taken(limited, 300, scopes=("user:bob",))[0] is not None
    assert granted(limited) == {"user:ann@month": 300, "user:bob@month": 300}
