"""A snapshot has every budget in force, and knows where the windows begin that count."""

from ledger.budgets.budget_snapshot import read_budgets
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.windows import LATE_S, window_at
from ledger.declared import declare

AT_US = 1_795_435_200_000_000
SPECS = (
    BudgetSpec("global", "month", 1_000, hard=True, timezone="UTC"),
    BudgetSpec("team:a", "day", 10, hard=False, timezone="Europe/Berlin"),
)


def test_every_budget_in_force_is_told_with_its_calendar(engine) -> None:
    empty = read_budgets(engine, "h1", AT_US)
    assert (empty.lines, empty.spent, empty.standings, empty.starts(AT_US)) == ((), (), {}, set())
    declare(engine, contracts=(), budgets=SPECS, config=("c", "c"), at_us=AT_US)
    seen = read_budgets(engine, "h1", AT_US)
    assert [(line.scope, line.limit_pusd) for line in seen.lines] == [
        ("global", "1000"),
        ("team:a", "10"),
    ]
    assert seen.calendars == {("month", "UTC"), ("day", "Europe/Berlin")}


def test_the_windows_of_a_moment_change_where_one_begins(engine) -> None:
    declare(engine, contracts=(), budgets=SPECS, config=("c", "c"), at_us=AT_US)
    seen = read_budgets(engine, "h1")
    day = window_at("day", "Europe/Berlin", AT_US // 10**6)
    before, after = (seen.starts((day.start_s + passed_s) * 10**6) for passed_s in (-1, LATE_S))
    assert day.start_s in after - before
    assert seen.starts((day.start_s + LATE_S + 60) * 10**6) == after
