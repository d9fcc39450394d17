"""Budgets as the books have them: the page's figures are the rows' own."""

import pytest
from sqlalchemy import insert, update

from dashboard.page import budgets
from ledger.budgets.binding import BudgetLine
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.states import BudgetState
from ledger.budgets.windows import CalendarWindow, window_at
from ledger.database import make_engine
from ledger.declared import declare
from ledger.orm import tables as orm

USD = 10**12
HALF_US = 1_500 * 10**6


def state(name: str, spent: int, held: int = 0, limit: int = 100) -> BudgetState:
    line = BudgetLine(f"{name}@day", name, "day", "UTC", True, limit)
    return BudgetState(f"{name}@day", line, CalendarWindow(1_000, 2_000), spent, held)


def test_the_nearest_to_its_limit_comes_first() -> None:
    found = [state("a", 10), state("b", 95), state("c", 60), state("d", 10, held=89)]
    order = [item.scope for item in budgets.rank_budgets(found, HALF_US)]
    assert order == ["b", "c", "d", "a"]


@pytest.mark.parametrize(
    ("spent", "held", "bars"),
    [
        (40, 0, [("spent", 0, 0.4)]),
        (40, 20, [("spent", 0, 0.4), ("held", 0.4, 0.6)]),
        (120, 0, [("spent", 0, 1), ("over the limit", 1, 1.2)]),
    ],
)
def test_bars_are_shares_of_the_limit(spent: int, held: int, bars: list) -> None:
    found = budgets.records([state("a", spent, held)], HALF_US)
    assert [(finding["kind"], finding["low"], finding["high"]) for finding in found] == [
        (kind, low, pytest.approx(high)) for kind, low, high in bars
    ]
    assert found[0]["forecast"] == pytest.approx(2 * spent / 100)


def test_a_limit_of_nothing_is_over_as_soon_as_anything_is_spent() -> None:
    assert budgets.records([state("a", 0, limit=0)], HALF_US)[0]["high"] == 0
    assert budgets.records([state("a", 5, limit=0)], HALF_US)[-1]["kind"] == "over the limit"


def test_the_first_page_has_the_budgets_nearest_to_their_limits(books, page, text_of) -> None:
    filled = books(days=1, peak=1.0)
    assert "Budgets No budget A budget limits what a team" in " ".join(
        text_of(page("answer", filled.url)).split()
    )
    specs = [BudgetSpec(f"team:{name}", "day", 50 * USD, hard=True, timezone="UTC")
               for name in "abcde"]  # fmt: skip
    engine = make_engine(filled.url)
    declare(engine, contracts=(), budgets=specs, config=("c", "c"), at_us=filled.now_us)
    window = window_at("day", "UTC", filled.now_us // 10**6).start_s
    with engine.begin() as connection:
        of_e = orm.BudgetWindowRow.budget_id == "team:e@day", orm.BudgetWindowRow.window == window
        connection.execute(update(orm.BudgetWindowRow).where(*of_e).values(spent_pusd=60 * USD))
    engine.dispose()
    told = " ".join(text_of(page("answer", filled.url, period="7 d")).split())
    assert "Budgets 4 of 5 budgets within limits" in told
    assert "team:e, this day 120 % of $50.00 team:a, this day 0 % of $50.00" in told
    assert "1 budget with nothing left" in told


def test_the_page_says_what_the_books_have(books, page, text_of) -> None:
    filled = books(days=1, peak=1.0)
    assert "No budget is in force" in text_of(page("budgets", filled.url))
    specs = [
        BudgetSpec("team:search", "month", 50 * USD, hard=True, timezone="UTC"),
        BudgetSpec("user:*", "month", 20 * USD, hard=False, timezone="UTC"),
    ]
    engine = make_engine(filled.url)
    declare(engine, contracts=(), budgets=specs, config=("c", "c"), at_us=filled.now_us)
    window = window_at("month", "UTC", filled.now_us // 10**6).start_s
    with engine.begin() as connection:
        row = {"budget_id": "user:ann@month", "window": window, "spent_pusd": 30 * USD}
        connection.execute(insert(orm.BudgetWindowRow), [row | {"granted_pusd": 0}])
    engine.dispose()
    test = page("budgets", filled.url, period="7 d")
    table = test.dataframe[0].value.set_index("budget")
    ann = table.loc["user:ann"]
    assert (ann["spent"], ann["left"], ann["at the limit"]) == (30.0, -10.0, "alert only")
    assert ann["limit from"] == "default user:*@month"
    assert table.loc["team:search"]["limit"] == 50.0
    told = " ".join(text_of(test).split())
    assert "Exhausted 1 budget user:ann (month)" in told
    assert "`user:*`: **\\$20.00** a month for each without a budget of their own; 1 of" in told


def test_runs_are_counted_and_only_the_worst_are_drawn(books, page, text_of) -> None:
    """Red before: thousands of exhausted runs stood before every other budget."""
    filled = books(days=1, peak=1.0)
    specs = [
        BudgetSpec("team:search", "day", 50 * USD, hard=True, timezone="UTC"),
        BudgetSpec("tag:run=*", "day", USD, hard=True, timezone="UTC"),
    ]
    engine = make_engine(filled.url)
    declare(engine, contracts=(), budgets=specs, config=("c", "c"), at_us=filled.now_us)
    day = window_at("day", "UTC", filled.now_us // 10**6).start_s
    rows = [{"budget_id": f"tag:run={n}@day", "window": day, "spent_pusd": USD, "granted_pusd": 0}
            for n in range(40)]  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.BudgetWindowRow), rows)
    engine.dispose()
    assert "1 of 1 budget within limits" in text_of(page("answer", filled.url, period="7 d"))
    test = page("budgets", filled.url, period="7 d")
    every, values = (frame.value["budget"].tolist() for frame in test.dataframe[:2])
    assert every == ["team:search"]
    assert len(values) == 5
    assert "40 of them spent in this window, **40** of them all that they may" in text_of(test)
