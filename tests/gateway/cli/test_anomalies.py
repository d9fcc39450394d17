"""`breakeven anomalies`: a series is muted with who and why, listed, and heard again."""

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
def anomalies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "breakeven.yaml").write_text(CONFIG.format(state=tmp_path / "state"))
    return lambda *words: CliRunner().invoke(app, ["anomalies", *words], env={"COLUMNS": "200"})


def test_muted_listed_and_heard_again(anomalies) -> None:
    answer = anomalies("mute", "team", "search", "--note", "a load test", "--by", "ann", "--yes")
    assert (answer.exit_code, answer.stdout) == (0, "The series team/search is muted.\n")
    (item,) = json.loads(anomalies("muted", "--json").stdout)["data"]
    assert (item["name"], item["by"], item["note"]) == ("team/search", "ann", "a load test")
    assert "a load test" in anomalies("muted").stdout
    assert (
        anomalies("unmute", "team", "search").stdout
        == "The series team/search is not muted any more.\n"
    )
    assert json.loads(anomalies("muted", "--json").stdout)["data"] == []


def test_what_is_not_muted_or_no_group_is_said(anomalies) -> None:
    answer = anomalies("unmute", "team", "search")
    assert answer.exit_code == 1
    assert "the series `team/search` is not muted; nothing was changed" in answer.stderr
    assert anomalies("mute", "people", "search").exit_code == 2
