"""A threshold is noted once a window by whoever looks first, and told until it is heard."""

from dataclasses import replace

import pytest
from sqlalchemy import delete, insert, select, update

from ledger.budgets.alerts import (
    LEASE_US,
    TOLD_FOR_US,
    VALUES_TOLD,
    WAIT_LIMIT_US,
    claim_due,
    highest_reached,
    mark_delivered,
    record_alerts,
)
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.windows import window_at
from ledger.declared import declare
from ledger.orm import tables as orm

US = 1_000_000
NOON_S = 1_780_056_000
BUDGET = "team:search@day"
HALF_AND_ALL = {BUDGET: [500_000, 1_000_000]}


@pytest.fixture
def spend(engine):
    """Sets what the window of a day has spent of its hundred."""
    with engine.begin() as connection:
        connection.execute(
            insert(orm.BudgetRow),
            [{"id": BUDGET, "scope": "team:search", "period": "day", "limit_pusd": 100,
              "hard": True, "timezone": "UTC", "created_us": 0}],
        )  # fmt: skip

    def to(pusd: int, at_s: int = NOON_S) -> int:
        start = window_at("day", "UTC", at_s).start_s
        here = {"budget_id": BUDGET, "window": start}
        with engine.begin() as connection:
            table = orm.BudgetWindowRow
            done = connection.execute(
                update(table)
                .where(table.budget_id == BUDGET, table.window == start)
                .values(spent_pusd=pusd)
            )
            if not done.rowcount:
                connection.execute(insert(table), [{**here, "spent_pusd": pusd, "granted_pusd": 0}])
        return start

    return to


def noted(engine, at_s=NOON_S):
    return [item.threshold_ppm for item in record_alerts(engine, HALF_AND_ALL, at_us=at_s * US)]


def test_a_threshold_is_noted_when_it_is_reached_and_once(engine, spend):
    assert noted(engine) == []
    spend(49)
    assert noted(engine) == []
    start = spend(50)
    (alert,) = record_alerts(engine, HALF_AND_ALL, at_us=NOON_S * US)
    assert (alert.scope, alert.window, alert.window_end) == ("team:search", start, start + 86_400)
    assert (alert.spent_pusd, alert.limit_pusd, alert.threshold_ppm) == (50, 100, 500_000)
    assert alert.hard is True
    assert noted(engine) == []
    spend(120)
    assert noted(engine) == [1_000_000]


def test_what_providers_claim_counts_as_it_does_at_the_limit(engine, spend):
    spend(30)
    with engine.begin() as connection:
        connection.execute(update(orm.BudgetWindowRow).values(claimed_pusd=20))
    (alert,) = record_alerts(engine, HALF_AND_ALL, at_us=NOON_S * US)
    assert (alert.threshold_ppm, alert.spent_pusd) == (500_000, 50)


def test_what_the_last_window_reached_at_its_end_is_noted_in_the_next(engine, spend):
    spend(60, NOON_S - 86_400)
    spend(60, NOON_S - 2 * 86_400)  # older news than that is none
    assert noted(engine) == [500_000]
    spend(50)
    assert noted(engine) == [500_000]


def test_a_retired_budget_reaches_nothing(engine, spend):
    spend(100)
    with engine.begin() as connection:
        connection.execute(update(orm.BudgetRow).values(retired_us=1))
    assert noted(engine) == []


def test_two_hosts_note_one_alert(engine, spend):
    spend(70)
    assert [*noted(engine), *noted(engine)] == [500_000]
    with engine.connect() as connection:
        assert len(connection.execute(select(orm.BudgetAlertRow.tries)).all()) == 1


def test_an_alert_is_somebodys_for_a_while_and_then_anybodys(engine, spend):
    spend(70)
    noted(engine)
    at_us = NOON_S * US
    (mine,) = claim_due(engine, at_us=at_us)
    assert mine.id == f"{BUDGET}:{mine.window}:500000"
    assert claim_due(engine, at_us=at_us + LEASE_US - 1) == ()
    (again,) = claim_due(engine, at_us=at_us + LEASE_US)  # who had it never came back
    assert again.tries == 1
    assert claim_due(engine, at_us=at_us + 2 * LEASE_US) == ()  # the next wait is longer
    mark_delivered(engine, again, at_us=at_us + LEASE_US + 1)
    assert claim_due(engine, at_us=at_us + 20 * WAIT_LIMIT_US) == ()


def test_waits_are_bounded_and_old_news_is_not_told(engine, spend):
    spend(70)
    noted(engine)
    at_us, tries = NOON_S * US, 0
    while claim_due(engine, at_us=at_us):
        at_us += WAIT_LIMIT_US
        tries += 1
        assert tries < 100
    assert tries == TOLD_FOR_US // WAIT_LIMIT_US


def test_a_default_is_told_for_each_whom_it_binds(engine) -> None:
    at_us = 1_795_435_200_000_000
    month = window_at("month", "UTC", at_us // 10**6).start_s
    each = BudgetSpec("user:*", "month", 1_000, hard=True, timezone="UTC")
    own = BudgetSpec("user:cat", "month", 9_000, hard=True, timezone="UTC")
    declare(engine, contracts=(), budgets=(each, own), config=("c", "c"), at_us=at_us)
    spent = {"user:ann@month": 900, "user:bob@month": 10, "user:cat@month": 900}
    rows = [{"budget_id": name, "window": month, "spent_pusd": pusd, "granted_pusd": 0}
            for name, pusd in spent.items()]  # fmt: skip
    with engine.begin() as connection:
        connection.execute(delete(orm.BudgetWindowRow))
        connection.execute(insert(orm.BudgetWindowRow), rows)
    thresholds = {"user:*@month": [800_000]}
    (alert,) = record_alerts(engine, thresholds, at_us=at_us)
    assert (alert.budget_id, alert.scope, alert.limit_pusd) == ("user:ann@month", "user:ann", 1_000)
    assert record_alerts(engine, thresholds, at_us=at_us) == ()
    (due,) = claim_due(engine, at_us=at_us)
    assert (due.id, due.hard, due.period) == (alert.id, True, "month")


def test_of_the_values_of_a_tag_the_first_few_are_told_and_then_once_that_there_are_more(
    engine,
) -> None:
    """Red before: each run that reached its limit was a message."""
    at_us = 1_795_435_200_000_000
    day = window_at("day", "UTC", at_us // 10**6).start_s
    each = BudgetSpec("tag:run=*", "day", 1_000, hard=True, timezone="UTC")
    declare(engine, contracts=(), budgets=(each,), config=("c", "c"), at_us=at_us)

    def reach(*names: int) -> list[tuple[str, int]]:
        rows = [{"budget_id": f"tag:run={name}@day", "window": day, "spent_pusd": 900 + name,
                 "granted_pusd": 0} for name in names]  # fmt: skip
        with engine.begin() as connection:
            connection.execute(insert(orm.BudgetWindowRow), rows)
        found = record_alerts(engine, {"tag:run=*@day": [500_000, 800_000]}, at_us=at_us)
        return [(alert.scope.removeprefix("tag:run="), alert.threshold_ppm) for alert in found]

    assert reach(1, 2) == [("2", 500_000), ("1", 500_000), ("2", 800_000), ("1", 800_000)]
    told = ["19", "18", "17", "*"]
    assert reach(*range(10, 20)) == [(name, ppm) for ppm in (500_000, 800_000) for name in told]
    assert reach(30) == []
    assert len(claim_due(engine, at_us=at_us)) == 2 * (VALUES_TOLD + 1)


def test_a_budget_that_was_ended_is_not_told_of_any_more(engine, spend):
    """Red before: a webhook that came an hour later was told of a budget that nobody had."""
    spend(70)
    assert noted(engine) == [500_000]
    at_us = NOON_S * US
    with engine.begin() as connection:
        connection.execute(update(orm.BudgetRow).values(retired_us=at_us))
    assert claim_due(engine, at_us=at_us) == ()
    with engine.begin() as connection:
        connection.execute(update(orm.BudgetRow).values(retired_us=None))
    assert len(claim_due(engine, at_us=at_us)) == 1, "the control: it is in force again"


def test_a_jump_is_told_by_its_highest_threshold(engine, spend):
    spend(120)
    steps = {BUDGET: [500_000, 800_000, 1_000_000]}
    jump = record_alerts(engine, steps, at_us=NOON_S * US)
    spend(60, NOON_S - 86_400)
    before = record_alerts(engine, HALF_AND_ALL, at_us=NOON_S * US)
    highest = [(alert.threshold_ppm, [lower.threshold_ppm for lower in others])
               for alert, others in highest_reached((*jump, *before))]  # fmt: skip
    assert highest == [(1_000_000, [500_000, 800_000]), (500_000, [])]


def test_of_values_of_a_tag_each_threshold_is_told_that_no_more_is_told_of(engine, spend):
    spend(120)
    jump = record_alerts(engine, HALF_AND_ALL, at_us=NOON_S * US)
    more = [replace(alert, scope="tag:run=*") for alert in jump]
    assert highest_reached(more) == [(more[0], []), (more[1], [])]
