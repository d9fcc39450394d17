"""Windows are the sums of their holds, and what no host was granted stands behind none."""

import pytest
from sqlalchemy import insert, select

from ledger.budgets.window_sums import total_windows
from ledger.orm import tables as orm
from ledger.orm.budgets import BOOKED, NO_HOST


@pytest.mark.each_database
def test_windows_of_one_start_are_brought_to_their_holds(engine) -> None:
    holds = [("r1.1", "x", 5, "posted"), ("r2.1", "x", 7, BOOKED), ("r3.1", "y", None, BOOKED)]
    rows = [{"attempt_id": name, "budget_id": f"user:{who}@day", "window": 9, "amount_pusd": 30,
             "state": state, "actual_pusd": pusd} for name, who, pusd, state in holds]  # fmt: skip
    window, grant = orm.BudgetWindowRow, orm.GrantRow

    def mine(column):
        return column.like("user:%")

    with engine.begin() as connection:
        connection.execute(insert(orm.HoldRow), rows)
        connection.execute(
            insert(grant),
            [{"budget_id": "user:x@day", "window": 9, "host": "h", "granted_pusd": 50,
              "spent_pusd": 5}],
        )  # fmt: skip
        connection.execute(
            insert(orm.RetiredHoldsRow),
            [{"budget_id": "user:x@day", "window": 9, "holds": 1, "actual_pusd": 100}],
        )
        teams = {"user:x@day": "a", "user:y@day": "c"}
        for _ in range(2):  # what is there already is brought to the same sums
            total_windows(connection, (), mine, 9, hard=True, teams=teams)
        columns = (window.budget_id, window.spent_pusd, window.granted_pusd, window.team_id)
        found = connection.execute(select(*columns).order_by(window.budget_id))
        assert [tuple(row) for row in found] == [
            ("user:x@day", 112, 157, "a"), ("user:y@day", 0, 30, "c"),
        ]  # fmt: skip
        nobody = select(grant.granted_pusd, grant.spent_pusd).where(grant.host == NO_HOST)
        given = connection.execute(nobody.order_by(grant.budget_id))
        assert [tuple(row) for row in given] == [(107, 107), (30, 0)]
