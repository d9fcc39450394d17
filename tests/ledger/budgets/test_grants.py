"""Grants never add up to more than the limit, whoever asks at the same time."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import insert, select, update

from ledger.budgets.grants import (
    BudgetAccount,
    GrantNeed,
    budgets,
    grow,
    shrink,
    spent_by_journal,
    standings,
)
from ledger.orm import tables as orm
from ledger.writing.repository import LedgerRepository

ACCOUNT = BudgetAccount("team:search@month", 1_778_000_000)


@pytest.fixture
def limited(engine):
    row = {
        "id": "team:search@month", "scope": "team:search", "period": "month",
        "limit_pusd": 1000, "hard": True, "created_us": 0,
    }  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.BudgetRow), [row])
    return engine


def raised(engine, host, missing, *, hold=100):
    return grow(engine, host, [GrantNeed(ACCOUNT, missing, hold)])[ACCOUNT]


def test_what_is_missing_is_granted_up_to_the_limit(limited):
    assert raised(limited, "a", 600, hold=600).mine_pusd == 600
    refused = raised(limited, "b", 500, hold=500)
    assert (refused.mine_pusd, refused.remaining_pusd) == (0, 400)
    assert raised(limited, "b", 400, hold=400).mine_pusd == 400
    assert raised(limited, "a", 1, hold=1).mine_pusd == 600


def test_while_much_is_left_a_grant_is_a_loan_ahead(limited):
    assert raised(limited, "a", 1, hold=1).mine_pusd == 250


def test_unspent_money_can_be_given_back_and_spent_money_cannot(limited, opened, settled):
    raised(limited, "a", 1000, hold=1000)
    records = [opened(1), settled(1, cost_pusd=400)]
    LedgerRepository(limited, host="a").import_records(records, journal="j", at_us=1)
    after = shrink(limited, "a", ACCOUNT, 10_000)
    assert (after.mine_pusd, after.granted_pusd, after.mine_spent_pusd) == (400, 400, 400)
    assert raised(limited, "b", 600, hold=600).mine_pusd == 600
    assert standings(limited, "b")[ACCOUNT].mine_pusd == 600
    assert spent_by_journal(limited, ["j", "k"]) == {("j", ACCOUNT): 400}


def test_a_lowered_limit_grants_nothing_more(limited):
    raised(limited, "a", 900, hold=900)
    with limited.begin() as connection:
        connection.execute(update(orm.BudgetRow).values(limit_pusd=100))
    found = raised(limited, "a", 1, hold=1)
    assert (found.mine_pusd, found.remaining_pusd) == (900, -800)


def test_a_budget_that_does_not_exist_grants_nothing(engine):
    assert raised(engine, "a", 1, hold=1).mine_pusd == 0


def test_retired_budgets_are_not_told(limited):
    assert [line.id for line in budgets(limited)] == ["team:search@month"]
    with limited.begin() as connection:
        connection.execute(update(orm.BudgetRow).values(retired_us=1))
    assert budgets(limited) == []


def test_hosts_at_once_never_exceed_the_limit(limited):
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: raised(limited, f"h{n % 4}", 70, hold=70), range(40)))
    with limited.connect() as connection:
        grants = connection.execute(select(orm.GrantRow.granted_pusd)).scalars().all()
        window = connection.execute(select(orm.BudgetWindowRow.granted_pusd)).scalar_one()
    assert sum(grants) == window
    assert 1000 - 70 < window <= 1000
