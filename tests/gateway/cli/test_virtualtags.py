"""`breakeven tags`: entered with who, listed, refused by rule, withdrawn."""

import json

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app

CONFIG = """
state_dir: {state}
models: {{chat: {{targets: [openai/gpt-4o-mini]}}}}
providers: {{openai: {{simulated: true}}}}
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "breakeven.yaml").write_text(CONFIG.format(state=tmp_path / "state"))
    return lambda *words: CliRunner().invoke(app, [*words], env={"COLUMNS": "200"})


def test_a_virtual_tag(run) -> None:
    rules = ("--rule", "support: team=support", "--rule", "rest: model=chat")
    answer = run("tags", "enter", "product", *rules, "--by", "ann", "--yes")
    assert (answer.exit_code, answer.stdout) == (0, "The virtual tag product is entered.\n")
    (item,) = json.loads(run("tags", "list", "--json").stdout)["data"]
    assert (item["by"], item["says"]["rules"]) == ("ann", [rules[1], rules[3]])
    assert "rest: model=chat" in run("tags", "list").stdout
    assert run("tags", "withdraw", "product").exit_code == 0
    assert json.loads(run("tags", "list", "--json").stdout)["data"] == []
    answer = run("tags", "enter", "product", "--rule", "support team=support")
    assert answer.exit_code == 1
    assert "rule 1, `support team=support`" in answer.stderr
