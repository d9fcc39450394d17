"""`breakeven doctor`: for people and for programs, with a status; it changes nothing."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app

GOOD = """
state_dir: {state}
server: {{port: 0}}
models: {{chat: {{targets: [openai/gpt-4o-mini]}}}}
providers: {{openai: {{api_key_env: OPENAI_API_KEY}}}}
policies: [{{name: default}}]
"""


def invoke(*words: object):
    return CliRunner().invoke(app, ["doctor", *map(str, words)])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    path = tmp_path / "file.yaml"
    path.write_text(GOOD.format(state=tmp_path / "state"))
    return path


def test_a_machine_that_can_serve(file) -> None:
    answer = invoke("--config", file, "--offline", "--json")
    assert answer.exit_code == 0, answer.stdout
    found = {finding["subject"]: finding["verdict"] for finding in json.loads(answer.stdout)}
    assert {"configuration", "python", "state", "ledger", "engines"} <= set(found)
    assert "error" not in found.values()
    assert not (file.parent / "state").exists()


def test_people_read_what_to_do(file, monkeypatch) -> None:
    monkeypatch.setattr("gateway.diagnosis.state.LEAST_BYTES", 2**62)
    answer = invoke("--config", file, "--offline")
    assert answer.exit_code == 0
    assert "warning disk:" in " ".join(answer.stdout.split())
    assert "-> make room" in answer.stdout
    assert invoke("--config", file, "--offline", "--strict").exit_code == 1


def test_an_address_that_nobody_answers_is_an_error(file) -> None:
    file.write_text(
        file.read_text().replace(
            "{api_key_env: OPENAI_API_KEY}",
            '{api_key_env: OPENAI_API_KEY, base_url: "http://127.0.0.1:1/v1"}',
        )
    )
    answer = invoke("--config", file, "--json")
    assert answer.exit_code == 1
    found = {finding["subject"]: finding for finding in json.loads(answer.stdout)}
    assert "refused" in found["providers.openai"]["words"]


def test_a_file_that_cannot_be_used_is_told_and_the_machine_is_looked_at(tmp_path) -> None:
    answer = invoke("--config", tmp_path / "none.yaml", "--json")
    assert answer.exit_code == 1
    subjects = [finding["subject"] for finding in json.loads(answer.stdout)]
    assert subjects[:2] == ["configuration", "python"]
