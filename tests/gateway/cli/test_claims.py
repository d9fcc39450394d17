"""The command that anyone can run: no ledger, no configuration, figures from the product."""

import json

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app


def test_every_claim_is_recomputed(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, ["claims", "--json"])
    assert answer.exit_code == 0
    told = {entry["id"]: entry for entry in json.loads(answer.stdout)}
    assert len(told) == 96
    assert told["even-2xH100-gpt-4"]["recomputed"] == ["352800000"]
    assert all(line["agrees"] and line["article"] for line in told.values())
    assert told["even-2xH100-gpt-4o"]["within_reach"] == {
        "input + output": True, "output only": False,
    }  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_only_those_that_do_not_follow() -> None:
    answer = CliRunner().invoke(app, ["claims", "--wrong"])
    assert "2x H100 against GPT-4, break-even" in answer.stdout
    assert "2x A100, a month of 720 hours" not in answer.stdout


def test_the_table_has_article_basis_and_reach() -> None:
    answer = CliRunner().invoke(app, ["claims"], env={"COLUMNS": "400"})
    line = next(row for row in answer.stdout.splitlines() if "against GPT-4o, break-even" in row)
    assert "tokens/month, input + output" in line
    assert "within (input + output), beyond" in line
    assert "An internal LLM serving stack" in line


OWN = ("claims", "--formula", "1 - to / from", "--input", "from=214", "--input", "to=139")


def test_a_figure_of_ones_own_is_judged() -> None:
    assert CliRunner().invoke(app, [*OWN, "--claimed", "0.35"]).stdout == (
        "0.3504672897: follows from its inputs\n"
    )
    told = json.loads(CliRunner().invoke(app, [*OWN, "--claimed", "0.7", "--json"]).stdout)
    assert told["verdict"] == "does not follow: 50 % below the claim"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (OWN[:5], "`to` has no value"),
        ((*OWN[:4], "from=x"), "is not a number"),
        ((*OWN[:4], "from"), "is not a number"),
        (("claims", "--formula", "1 +"), "is not a formula"),
        ((*OWN, "--claimed", "many"), "is not a figure"),
    ],
)
def test_what_gives_nothing_says_why(words, says: str) -> None:
    answer = CliRunner().invoke(app, list(words))
    assert answer.exit_code == 1
    assert says in answer.stderr
