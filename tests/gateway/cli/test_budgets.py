"""`breakeven budgets`: entered with who and why, listed beside the file's, ended and taken back."""

import json
import time

import pytest
from sqlalchemy import delete, insert
from typer.testing import CliRunner

from gateway.cli.app import app
from gateway.cli.budgets import shown_dollars
from ledger.budgets.windows import window_at
from ledger.database import make_engine, sqlite_url
from ledger.orm.budgets import BudgetWindowRow

CONFIG = """
state_dir: {state}
models: {{chat: {{targets: [openai/gpt-4o-mini]}}}}
providers: {{openai: {{simulated: true}}}}
budgets: [{{scope: "team:search", usd: 50}}]
"""


@pytest.fixture
def budgets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "breakeven.yaml").write_text(CONFIG.format(state=tmp_path / "state"))
    return lambda *words: CliRunner().invoke(app, ["budgets", *words], env={"COLUMNS": "200"})


def test_from_the_files_limit_to_another_and_back(budgets) -> None:
    answer = budgets("enter", "team:search", "40", "--note", "agreed", "--by", "ann", "--yes")
    assert (answer.exit_code, answer.stdout) == (
        0, "The budget team:search@month is entered: $40 a month.\n",
    )  # fmt: skip
    (item,) = json.loads(budgets("list", "--json").stdout)["data"]
    assert (item["entered"]["by"], item["entered"]["note"]) == ("ann", "agreed")
    assert item["configured"]["limit_usd"] == "50.000000000000"
    assert "ann" in budgets("list").stdout
    assert "is ended" in budgets("end", "team:search").stdout
    assert "taken back" in budgets("withdraw", "team:search").stdout
    (item,) = json.loads(budgets("list", "--json").stdout)["data"]
    assert item["entered"] is None


def test_what_is_no_limit_is_said(budgets) -> None:
    assert budgets("enter", "team:search", "much").exit_code != 0
    answer = budgets("enter", "teem:search", "5")
    assert "did you mean `team`?" in answer.stderr + answer.stdout


def test_a_budget_that_was_entered_and_withdrawn_is_in_no_list(budgets) -> None:
    budgets("enter", "team:other", "5")
    assert "team:other@month" in budgets("list").stdout
    budgets("withdraw", "team:other")
    assert "team:other" not in budgets("list").stdout


def test_the_list_has_cents_and_says_what_refuses(budgets) -> None:
    """It had twelve decimals, and nothing of hard or soft."""
    budgets("enter", "team:soft", "5", "--soft")
    budgets("enter", "team:tiny", "0.0000125")
    lines = {line.split()[0]: line.split() for line in budgets("list").stdout.splitlines() if line}
    assert lines["team:soft@month"][1:6] == ["soft", "$5.00", "$0.00", "$0.00", "$5.00"]
    assert lines["team:tiny@month"][1:3] == ["hard", "$0.0000125"]
    assert lines["team:search@month"][1:3] == ["hard", "$50.00"]
    assert lines["team:search@month"][6] == "$50.00"
    budgets("end", "team:search")
    lines = {line.split()[0]: line.split() for line in budgets("list").stdout.splitlines() if line}
    assert lines["team:search@month"][1:3] == ["-", "-"], "what is ended refuses nothing"


@pytest.mark.parametrize(
    ("exact", "shown"),
    [
        ("12.345678901234", "$12.35"), ("1234.567890123456", "$1,234.57"),
        ("0.004020000001", "$0.00402"), ("-0.990890000000", "-$0.991"),
        ("-1.990890000000", "-$1.99"), ("0.000000000000", "$0.00"),
        ("0.000000000001", "$0.000000000001"),
    ],
)  # fmt: skip
def test_dollars_of_the_list_have_cents_or_three_digits(exact, shown) -> None:
    assert shown_dollars({"limit_usd": exact}, "limit_usd") == shown
    assert shown_dollars(None, "limit_usd") == "-"


def test_what_is_claimed_has_a_column_where_there_is_any(budgets, tmp_path) -> None:
    """Red before: of $40 with $1 spent $36 were left, and nothing said why."""
    budgets("enter", "team:search", "40")
    assert "claimed" not in budgets("list").stdout
    engine = make_engine(sqlite_url(tmp_path / "state" / "ledger.db"))
    usd, month = 10**12, window_at("month", "UTC", int(time.time()))
    counted = {"spent_pusd": usd, "claimed_pusd": 3 * usd}
    table = BudgetWindowRow.__table__
    of_month = {"budget_id": "team:search@month", "window": month.start_s}
    with engine.begin() as connection:
        connection.execute(delete(table))
        connection.execute(insert(table).values(**of_month, **counted))
    engine.dispose()
    (item,) = json.loads(budgets("list", "--json").stdout)["data"]
    assert item["in_force"]["claimed_usd"] == "3.000000000000"
    heads, row = [line.split() for line in budgets("list").stdout.splitlines() if line][-2:]
    assert heads[2:7] == ["limit", "spent", "held", "claimed", "left"]
    assert row[2:7] == ["$40.00", "$1.00", "$0.00", "$3.00", "$36.00"]
