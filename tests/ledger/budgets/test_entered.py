"""Budgets that people entered: in force over the file's, through starts of any host, by name."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from ledger import declared
from ledger.budgets.alerts import record_alerts
from ledger.budgets.entered import BudgetSpec, entered_thresholds, with_entered
from ledger.budgets.versions import budgets_are_as_said
from ledger.declared import carry_budgets, declare
from ledger.manual_entries import BUDGET, ManualEntry, enter
from ledger.orm.budgets import BudgetRow

USD = 10**12
SEARCH = BudgetSpec("team:search", "month", 500 * USD, hard=True, timezone="UTC")
FILE = (SEARCH, BudgetSpec("global", "day", 9 * USD, hard=False, timezone="UTC"))
NAME = "team:search@month"
LOWER = {"usd": "200.5", "hard": False, "timezone": "Asia/Kolkata", "alert_ppm": [500_000]}
ENDED = {"usd": None}


def start(engine, at_us: int, file=FILE) -> None:
    declare(engine, contracts=(), budgets=file, config=("h", "t"), at_us=at_us)


def say(engine, at_us: int, says, *, name: str = NAME, configured=None) -> int:
    with engine.begin() as connection:
        enter(connection, ManualEntry(0, BUDGET + name, says, at_us, at_us, "fay", "why"))
        return carry_budgets(connection, at_us, configured)


def in_force(engine) -> dict[str, tuple[int, bool, str]]:
    query = select(BudgetRow.id, BudgetRow.limit_pusd, BudgetRow.hard, BudgetRow.timezone)
    with engine.connect() as connection:
        assert [*budgets_are_as_said(connection)] == [], "what `ledger verify` holds them against"
        found = connection.execute(query.where(BudgetRow.retired_us.is_(None)))
        return {row[0]: tuple(row[1:]) for row in found}


OF_FILE = {NAME: (500 * USD, True, "UTC"), "global@day": (9 * USD, False, "UTC")}
ENTERED = OF_FILE | {NAME: (200_500_000_000_000, False, "Asia/Kolkata")}


def test_an_entry_stands_over_the_file_until_it_is_taken_back(engine) -> None:
    start(engine, 1)
    assert say(engine, 2, LOWER) == 1
    assert in_force(engine) == ENTERED
    start(engine, 3)
    assert in_force(engine) == ENTERED, "another start, another host: it stays"
    start(engine, 4, [replace(SEARCH, limit_pusd=7), FILE[1]])
    assert in_force(engine) == ENTERED, "and the file's new word waits beneath it"
    assert say(engine, 5, None, configured={NAME: SEARCH}) == 1
    assert in_force(engine) == OF_FILE


def test_one_that_no_file_names_is_there_until_it_is_ended_or_taken_back(engine) -> None:
    start(engine, 1)
    name = "user:ann@day"
    says = LOWER | {"timezone": "UTC"}
    for back in (ENDED, None):
        say(engine, 2, says, name=name)
        start(engine, 3)
        assert in_force(engine) == OF_FILE | {name: (200_500_000_000_000, False, "UTC")}
        say(engine, 4, back, name=name, configured=None if back else {name: None})
        start(engine, 5)
        assert in_force(engine) == OF_FILE


def test_one_of_the_file_that_is_ended_stays_ended(engine) -> None:
    start(engine, 1)
    say(engine, 2, ENDED)
    start(engine, 3)
    assert set(in_force(engine)) == {"global@day"}


def test_what_an_older_host_retires_is_put_in_force_again(engine, monkeypatch) -> None:
    """A version without entered budgets declares its file alone, as all versions did before."""
    start(engine, 1)
    say(engine, 2, LOWER)
    say(engine, 2, LOWER | {"timezone": "UTC"}, name="user:ann@day")
    before = in_force(engine)
    with monkeypatch.context() as older:
        older.setattr(declared, "with_entered", lambda specs, _: [*specs])
        start(engine, 3)
    assert in_force(engine) == OF_FILE, "the control: it did retire it"
    with engine.begin() as connection:
        assert carry_budgets(connection, 4) == 2
        assert carry_budgets(connection, 5) == 0, "once"
    assert in_force(engine) == before


def test_nothing_is_written_while_all_is_as_entered(engine) -> None:
    start(engine, 1)
    with engine.begin() as connection:
        assert carry_budgets(connection, 2) == 0
    say(engine, 3, LOWER)
    with engine.begin() as connection:
        assert carry_budgets(connection, 4) == 0
        assert entered_thresholds(connection, 4) == {NAME: (500_000,)}


@pytest.mark.parametrize(("says", "found"), [(None, 1), (ENDED, 0), (LOWER, 1)])
def test_an_entry_changes_no_other_budget(says, found: int) -> None:
    entry = ManualEntry(1, BUDGET + NAME, says, 1, 1, "fay")
    made = with_entered(FILE, {NAME: entry})
    assert FILE[1] in made
    assert len([spec for spec in made if spec.id == NAME]) == found


def test_an_entered_threshold_is_noted(engine) -> None:
    start(engine, 1)
    say(engine, 2, LOWER | {"usd": "0", "timezone": "UTC"})
    with engine.connect() as connection:
        thresholds = entered_thresholds(connection, 3)
    assert [*thresholds] == [NAME]
    (alert,) = record_alerts(engine, thresholds, at_us=3)
    assert (alert.budget_id, alert.threshold_ppm) == (NAME, 500_000)


def test_a_host_whose_clock_is_behind_does_not_bring_back_what_was_taken_back(engine) -> None:
    """Its writer looks with a clock that reads before the instant at which it was taken back."""
    start(engine, 1)
    say(engine, 2, LOWER | {"timezone": "UTC"})
    say(engine, 10, None, configured={NAME: SEARCH})
    assert in_force(engine) == OF_FILE
    with engine.begin() as connection:
        carry_budgets(connection, 9)
    assert in_force(engine) == OF_FILE, "for good: nothing else hands the word back to the file"
    start(engine, 9)
    assert in_force(engine) == OF_FILE
