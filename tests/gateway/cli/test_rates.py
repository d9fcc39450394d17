"""`breakeven rates`: entered with who and why, listed, taken back; each mistake one clear line."""

import json
import re
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app

CONFIG = """
state_dir: {state}
models: {{chat: {{targets: ["pool:a"], compare_with: [openai/gpt-4o-mini]}}}}
pools: {{a: {{engine: {{kind: simulated, model: x, replicas: 1}}, gpu: {{type: H200, count: 2}}}}}}
"""


@pytest.fixture
def rates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "breakeven.yaml").write_text(CONFIG.format(state=tmp_path / "state"))
    return lambda *words: CliRunner().invoke(app, ["rates", *words], env={"COLUMNS": "200"})


def test_from_nothing_to_a_rate_and_back(rates) -> None:
    given = ("a", "--usd-per-hour", "3.5", "--ops-hours", "2", "--ops-usd-per-hour", "95",
             "--source", "contract 17", "--note", "renewed", "--by", "ann")  # fmt: skip
    answer = rates("enter", *given)
    assert (answer.exit_code, answer.stdout) == (0, "Entered for a: it counts at once.\n")
    (item,) = json.loads(rates("list", "--json").stdout)["data"]
    assert item["in_force"]["usd_per_hour"] == "3.500000000000"
    assert (item["entered"]["by"], item["entered"]["note"]) == ("ann", "renewed")
    day = f"{datetime.now(UTC).year + 2}-01-01"
    later = rates("enter", "a", "--usd-per-hour", "3", "--source", "s", "--since", day)
    assert later.exit_code == 0
    assert f"3 from {day}" in rates("list").stdout
    assert rates("withdraw", "a").exit_code == 0
    assert "enter the rate" in rates("list").stdout


def row_of(shown: str) -> list[str]:
    """Return the cells of the pool `a`, white space as one blank."""
    (line,) = [line for line in shown.splitlines() if line.strip().startswith("a ")]
    return re.split(r"\s{2,}", line.strip())


def test_ops_that_nobody_entered_are_said_and_are_not_zero(rates) -> None:
    rates("enter", "a", "--usd-per-hour", "3.5", "--source", "quote 1")
    assert row_of(rates("list").stdout)[2:6] == ["3.5", "quote 1", "not entered", "-"]
    rates("enter", "a", "--ops-hours", "2", "--source", "HR")
    assert row_of(rates("list").stdout)[4:6] == ["2", "not entered"]
    rates("enter", "a", "--ops-usd-per-hour", "95", "--source", "HR")
    assert row_of(rates("list").stdout)[2:7] == ["3.5", "quote 1", "2", "95", "HR"]
    rates("enter", "a", "--ops-hours", "0", "--source", "HR")
    assert row_of(rates("list").stdout)[4:6] == ["0", "95"]


def test_what_counts_later_is_said_with_its_ops(rates) -> None:
    day = f"{datetime.now(UTC).year + 2}-01-01"
    rates("enter", "a", "--usd-per-hour", "3", "--source", "s", "--since", day)
    shown = rates("list").stdout
    assert f"3 from {day}, ops not entered" in " ".join(shown.split())
    answer = rates("enter", "a", "--ops-hours", "1", "--ops-usd-per-hour", "80", "--source", "HR")
    assert answer.stdout == (
        "Entered for a: it counts at once.\n"
        f"From {day} on a costs 3 USD an hour of one GPU, and ops 1 h a week at 80 USD, with "
        "this change.\n"
    )
    shown = " ".join(rates("list").stdout.split())
    assert f"3 from {day}, ops 1 h/week at 80" in shown
    answer = rates("enter", "a", "--usd-per-hour", "4", "--source", "s")
    assert answer.stdout == (
        "Entered for a: it counts at once.\n"
        f"From {day} on a costs 3 USD an hour of one GPU, and ops 1 h a week at 80 USD, as "
        "entered for that day.\n"
    )


def test_a_currency_is_quoted(rates) -> None:
    answer = rates("currency", "EUR", "0.92", "--day", "2026-11-02", "--source", "ECB")
    assert answer.stdout == "1 USD is 0.92 EUR on 2026-11-02, says ECB.\n"


def test_an_older_day_of_a_currency_is_noted_and_the_newer_one_stays(rates) -> None:
    for day, per_usd in (("2026-11-02", "0.92"), ("2026-10-01", "0.8")):
        answer = rates("currency", "EUR", per_usd, "--day", day, "--source", "ECB")
    assert answer.stdout == (
        "1 USD is 0.8 EUR on 2026-10-01, says ECB. "
        "The newer rate of 2026-11-02 stays in force: 0.92.\n"
    )


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("enter", "b", "--source", "s"), "the configuration has no pool `b`: name one of `pools`"),
        (
            ("enter", "a", "--source", "s", "--usd-per-hour", "x"),
            "invalid number `x`: write digits, for example 2.50",
        ),
        (
            ("enter", "a", "--source", "s", "--since", "soon"),
            "invalid date `soon`: write YYYY-MM-DD",
        ),
        (("withdraw", "a"), "no rate is entered for pool `a`"),
    ],
)
def test_a_mistake_is_one_line(rates, words, fault) -> None:
    answer = rates(*words)
    assert (answer.exit_code, fault in answer.stderr) == (1, True)
