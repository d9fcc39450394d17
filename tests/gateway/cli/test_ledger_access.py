"""Commands that also answer before a first start: they make nothing, and say what they miss."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app

CONFIG = """
state_dir: {state}
models: {{chat: {{targets: [openai/gpt-4o-mini], compare_with: [openai/gpt-4o-mini]}}}}
providers: {{openai: {{api_key_env: OPENAI_API_KEY}}}}
"""
SUPPOSED = ("policy", "explain", "--model", "chat")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "breakeven.yaml"
    path.write_text(CONFIG.format(state=tmp_path / "state"))
    return path


def test_a_supposed_request_is_explained_before_the_first_start(config: Path) -> None:
    answer = CliRunner().invoke(app, [*SUPPOSED, "--config", str(config)])
    assert answer.exit_code == 0, answer.stderr
    assert "openai/gpt-4o-mini" in answer.stdout
    assert not (config.parent / "state").exists()


def test_an_address_that_is_not_set_is_one_line(config: Path, monkeypatch) -> None:
    monkeypatch.delenv("LEDGER_HERE", raising=False)
    config.write_text(config.read_text() + "ledger: {url_env: LEDGER_HERE}\n")
    answer = CliRunner().invoke(app, [*SUPPOSED, "--config", str(config)])
    assert answer.exit_code == 1
    assert answer.stderr == "breakeven: ledger.url_env: `LEDGER_HERE` is not set\n"
