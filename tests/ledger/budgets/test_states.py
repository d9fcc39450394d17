"""Spent, held, left and forecast of each window, by hand; defaults with whom they bind."""

import pytest
from sqlalchemy import delete, insert

from ledger.budgets.binding import BudgetLine
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.states import BoundAccounts, BudgetState, budget_states
from ledger.budgets.windows import CalendarWindow, window_at
from ledger.declared import declare
from ledger.orm import tables as orm

AT_US = 1_795_435_200_000_000
MONTH = window_at("month", "UTC", AT_US // 10**6)


def state(spent: int, limit: int = 100, held: int = 0, claimed: int = 0) -> BudgetState:
    line = BudgetLine("global@day", "global", "day", "UTC", True, limit)
    return BudgetState(
        "global@day", line, CalendarWindow(1_000, 2_000), spent, held, claimed_pusd=claimed
    )


def test_a_forecast_is_the_pace_so_far_and_none_early() -> None:
    half = 1_500 * 10**6
    assert state(30).forecast_pusd(half) == 60
    assert state(0).forecast_pusd(half) == 0
    assert state(30, claimed=7).forecast_pusd(half) == 67, "claims narrow it as they stand"
    assert state(30).forecast_pusd(1_049 * 10**6) is None
    assert state(30).forecast_pusd(1_050 * 10**6) == 600
    assert state(30).forecast_pusd(9_000 * 10**6) == 30, "a window that is over ends as it is"


def test_what_is_held_is_not_left() -> None:
    assert state(30, held=20).remaining_pusd == 50
    assert state(120).remaining_pusd == -20


@pytest.fixture
def books(engine):
    each = BudgetSpec("user:*", "month", 10**12, hard=True, timezone="UTC")
    own = BudgetSpec("user:cat", "month", 5 * 10**12, hard=False, timezone="UTC")
    declare(engine, contracts=(), budgets=(each, own), config=("c", "c"), at_us=AT_US)
    with engine.begin() as connection:
        connection.execute(delete(orm.BudgetWindowRow))
        for name, pusd, start in (("ann", 7, 0), ("cat", 9, 0), ("bob", 5, -1)):
            row = {"budget_id": f"user:{name}@month", "window": MONTH.start_s + start,
                   "spent_pusd": pusd, "granted_pusd": 0}  # fmt: skip
            connection.execute(insert(orm.BudgetWindowRow), [row])
        for attempt, status, pusd in (("a", "held", 40), ("b", "held", 2), ("c", "posted", 1)):
            row = {"attempt_id": attempt, "budget_id": "user:ann@month", "window": MONTH.start_s,
                   "amount_pusd": pusd, "state": status}  # fmt: skip
            connection.execute(insert(orm.HoldRow), [row])
        alert = {"budget_id": "user:ann@month", "window": MONTH.start_s, "spent_pusd": 7,
                 "limit_pusd": 8, "reached_us": 1, "due_us": 1, "tries": 0}  # fmt: skip
        connection.execute(
            insert(orm.BudgetAlertRow), [alert | {"threshold_ppm": n} for n in (10**6, 800_000)]
        )
    return engine


def test_each_account_has_its_line_its_holds_and_its_alerts(books) -> None:
    with books.connect() as connection:
        found = {
            budget_state.account: budget_state for budget_state in budget_states(connection, AT_US)
        }
    assert list(found) == ["user:*@month", "user:ann@month", "user:cat@month"]
    ann, cat, each = found["user:ann@month"], found["user:cat@month"], found["user:*@month"]
    assert (ann.spent_pusd, ann.held_pusd, ann.alerts) == (7, 42, (800_000, 10**6))
    assert (ann.default, ann.line.limit_pusd, ann.scope) == ("user:*@month", 10**12, "user:ann")
    assert (cat.default, cat.line.limit_pusd, cat.held_pusd) == (None, 5 * 10**12, 0)
    assert (each.is_default, ann.is_default, each.spent_pusd) == (True, False, 0)


def test_who_is_asked_for_is_told_of_before_they_spent(books) -> None:
    with books.connect() as connection:
        found = [
            budget_state.scope
            for budget_state in budget_states(connection, AT_US, ("user:dan", "team:x"))
        ]
    assert found == ["user:*", "user:ann", "user:dan", "user:cat"]


def test_of_the_values_of_a_tag_those_with_the_least_left_are_told_and_all_are_counted(engine):
    each = BudgetSpec("tag:run=*", "month", 90, hard=True, timezone="UTC")
    declare(engine, contracts=(), budgets=(each,), config=("c", "c"), at_us=AT_US)
    with engine.begin() as connection:
        rows = [{"budget_id": f"tag:run={n:03}@month", "window": MONTH.start_s, "spent_pusd": n,
                 "granted_pusd": 0} for n in range(1, 101)]  # fmt: skip
        connection.execute(insert(orm.BudgetWindowRow), rows)
        found = budget_states(connection, AT_US, ["tag:run=007", "tag:run=x"])
    default, *values = found
    assert default.bound == BoundAccounts(101, 11, 5050, 0)
    assert [value.scope for value in values] == [
        "tag:run=007", "tag:run=096", "tag:run=097", "tag:run=098", "tag:run=099", "tag:run=100",
        "tag:run=x",
    ]  # fmt: skip
    assert all(value.is_value and value.bound is None for value in values)
    assert not default.is_value
