"""`breakeven rates gpus` and `rates reserve`: entered by file and by hand; faults are one line."""

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app
from ledger.database import open_readonly
from ledger.fleet.entered_offers import reserved_offers

CONFIG = """
state_dir: {state}
models:
  chat: {{targets: ["pool:a", "openai/gpt-4o-mini"], compare_with: [openai/gpt-4o-mini]}}
providers: {{openai: {{}}}}
pools: {{a: {{engine: {{kind: simulated, model: x, replicas: 1}}, gpu: {{type: H200, count: 2}}}}}}
"""
RESERVE = ("reserve", "openai/gpt-4o-mini", "--tokens-per-minute", "2500", "--usd-per-hour", "1",
           "--day", "2026-11-02", "--source", "quote 8")  # fmt: skip


@pytest.fixture
def rates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "breakeven.yaml").write_text(CONFIG.format(state=tmp_path / "state"))
    return lambda *words: CliRunner().invoke(app, ["rates", *words], env={"COLUMNS": "200"})


def test_an_offer_stands_in_the_books(rates, tmp_path) -> None:
    answer = rates(*RESERVE)
    assert (answer.exit_code, answer.stdout) == (
        0, "Entered for openai/gpt-4o-mini: the next verdict weighs it.\n",
    )  # fmt: skip
    engine = open_readonly(f"sqlite:///{tmp_path / 'state' / 'ledger.db'}")
    with engine.connect() as connection:
        (offer,) = reserved_offers(connection, 2**62)
    engine.dispose()
    assert (offer.tokens_per_minute, offer.pusd_per_hour) == (2_500, 10**12)


def test_mistakes_are_one_clear_line(rates, tmp_path) -> None:
    assert "no provider `nobody`" in rates("reserve", "nobody/m", *RESERVE[2:]).output
    assert "term" in rates(*RESERVE, "--term", "week").output
    (tmp_path / "p.csv").write_text("gpu,usd_per_hour,day,source\nH100,x,2026-11-02,s\n")
    answer = rates("gpus", "p.csv")
    assert answer.exit_code == 1
    assert "p.csv: line 2, column `usd_per_hour`" in answer.output
    assert rates("gpus", "none.csv").exit_code == 1


def test_a_ledger_without_a_catalogue_says_who_writes_it(rates, tmp_path) -> None:
    """Red before: the list of names behind the colon was empty."""
    (tmp_path / "p.csv").write_text("gpu,usd_per_hour,day,source\nH100,2.4,2026-11-02,s\n")
    answer = rates("gpus", "p.csv")
    assert answer.exit_code == 1
    assert "`H100` is not in the catalogue: no host has written it yet" in answer.output
