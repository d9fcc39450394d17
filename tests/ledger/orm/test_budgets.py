"""Limits and totals of budgets keep every digit of the largest amounts."""

from sqlalchemy import insert, select

from ledger.orm.budgets import BudgetWindowRow, GrantRow

LARGE = 10**30 + 1  # a million million million USD


def test_windows_and_grants_hold_more_than_64_bits(engine):
    key = {"budget_id": "global@month", "window": 1}
    with engine.begin() as connection:
        connection.execute(
            insert(BudgetWindowRow), [{**key, "spent_pusd": LARGE, "granted_pusd": 2 * LARGE}]
        )
        connection.execute(insert(GrantRow), [{**key, "host": "h", "granted_pusd": LARGE}])
        window = connection.execute(
            select(BudgetWindowRow.spent_pusd, BudgetWindowRow.granted_pusd)
        )
        assert tuple(window.one()) == (LARGE, 2 * LARGE)
        grant = connection.execute(select(GrantRow.granted_pusd, GrantRow.spent_pusd))
        assert tuple(grant.one()) == (LARGE, 0)
