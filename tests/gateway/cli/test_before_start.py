"""Commands before the first `serve` read what the configuration declares, and change nothing."""

import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app
from gateway.config.settings import load
from gateway.host.prepare import prepare
from ledger.database import is_declared, make_engine, sqlite_url

CONFIG = """
state_dir: {state}
models:
  chat: {{targets: ["pool:own", openai/gpt-4o-mini], compare_with: [openai/gpt-4o-mini]}}
pools:
  own:
    engine: {{kind: vllm, served_name: own, endpoints: ["http://127.0.0.1:9/v1"]}}
    gpu: {{type: H100, billing: reserved, usd_per_hour: 2.5}}
providers: {{openai: {{simulated: true}}}}
budgets: [{{scope: "team:search", usd: 20}}]
"""
NOTE = "the gateway was never started with breakeven.yaml: the result shows what the file declares"
SAID = {
    ("budgets", "list"): "team:search@month  hard  $20.00",
    ("prices", "show"): "0.15",
    ("prices", "check"): "no findings",
    ("rates", "list"): "1 H100",
    ("ledger", "report"): "No verdict for pool own: no hour of this period is billed yet",
}


@pytest.fixture
def breakeven(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("breakeven.yaml").write_text(CONFIG.format(state=tmp_path / "state"))
    return lambda *words: CliRunner().invoke(app, words, env={"COLUMNS": "200"})


@pytest.mark.parametrize("has_ledger", [False, True])
@pytest.mark.parametrize("words", list(SAID), ids=" ".join)
def test_they_speak_of_the_configuration(breakeven, words, has_ledger) -> None:
    if has_ledger:
        assert breakeven("keys", "create", "--name", "first").exit_code == 0
    answer = breakeven(*words)
    assert answer.exit_code == 0, answer.output
    assert SAID[words] in answer.stdout
    assert NOTE in answer.stderr
    assert Path("state").exists() is has_ledger
    if has_ledger:
        with sqlite3.connect("state/ledger.db") as ledger:
            tables = ("gpu_contracts", "budgets", "config_versions")
            counts = [ledger.execute(f"SELECT count(*) FROM {name}").fetchone() for name in tables]
        assert counts == [(0,)] * 3, "a contract's bill would begin with the command"


def test_a_budget_of_the_file_is_ended_before_the_first_start(breakeven) -> None:
    assert "is ended" in breakeven("budgets", "end", "team:search").stdout
    assert ", ended" in breakeven("budgets", "list").stdout
    answer = breakeven("budgets", "end", "team:other")
    assert "`breakeven budgets list` shows all" in answer.stderr


def test_an_import_of_prices_compares_with_those_of_the_first_start(breakeven) -> None:
    Path("mine.csv").write_text(
        "name,input_usd_per_million,output_usd_per_million\nopenai/gpt-4o-mini,0.2,0.8\n"
    )
    before = breakeven("prices", "diff", "--from", "mine.csv").stdout
    assert "0.15" in before, before
    answer = breakeven("prices", "import", "--from", "mine.csv", "--yes", "--by", "ann")
    assert "0.15" in answer.stdout, answer.output
    assert "1 new versions stored" in answer.stdout


def test_after_a_start_the_ledger_speaks_alone(breakeven, tmp_path) -> None:
    prepare(load(Path("breakeven.yaml")), Path("breakeven.yaml"))
    engine = make_engine(sqlite_url(tmp_path / "state/ledger.db"))
    assert is_declared(engine)
    engine.dispose()
    answer = breakeven("budgets", "list")
    assert answer.stderr == ""
    assert SAID["budgets", "list"] in answer.stdout
