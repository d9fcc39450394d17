"""`breakeven budgets`: entered with who and why, listed beside the file's, ended and taken back."""

import json

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app

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
