"""`breakeven estimates`: what is learned is shown, and a reset is told as it is."""

import json

import pytest
from rich.console import Console
from typer.testing import CliRunner

from gateway.cli.app import app
from gateway.cli.estimates import _table, _target_table, _told

CONFIG = """
state_dir: {state}
models: {{chat: {{targets: [openai/gpt-4o-mini], compare_with: [openai/gpt-4o-mini]}}}}
providers: {{openai: {{api_key_env: OPENAI_API_KEY}}}}
"""


@pytest.fixture
def breakeven(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "breakeven.yaml").write_text(CONFIG.format(state=tmp_path / "state"))
    return lambda *words: CliRunner().invoke(app, words)


def test_a_reset_is_kept_for_gateways_that_start_later(breakeven) -> None:
    answer = breakeven("estimates", "reset", "--team", "search", "--by", "ann", "--note", "a lie")
    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout.splitlines() == [
        "Estimates of team search are reset.", "Running gateways follow within 2 s.",
    ]  # fmt: skip
    said = json.loads(breakeven("estimates", "reset", "--by", "bob", "--json").stdout)
    assert (said["number"], said["by"], said["keys"]) == (2, "bob", None)


def test_an_unknown_model_is_one_clear_line(breakeven) -> None:
    answer = breakeven("estimates", "reset", "--model", "none")
    assert answer.exit_code == 1
    assert "there is no model named `none`" in answer.stderr


def test_without_a_gateway_there_is_nothing_to_show(breakeven) -> None:
    answer = breakeven("estimates", "show")
    assert answer.exit_code == 1
    assert "no gateway runs on" in answer.stderr


def test_what_is_told_of_a_running_host() -> None:
    said = {"model": "chat", "team": "search", "target": None, "keys": 1}
    assert _told(said).startswith("Estimates of model chat and team search are reset. On this host")
    known = {"model": "chat", "team": None, "bytes_per_token": 3.914, "template_tokens": 64,
             "context_margin": 1.034, "observations": 12, "output_tokens": None,
             "seen_us": 1_700_000_000_000_000}  # fmt: skip
    out = Console(width=120, record=True)
    out.print(_table([known]))
    shown = out.export_text()
    for words in ("chat", "(long name)", "3.91", "64", "1.03", "12", "2023-11-14 22:13 UTC"):
        assert words in shown


def test_what_is_told_of_targets() -> None:
    said = {"model": None, "team": None, "target": "openai/m", "keys": None}
    assert _told(said).startswith("Estimates of target openai/m are reset.\n")
    known = {"target": "openai/m", "ttft_ms": 812.34, "tpot_ms": None, "latency_observations": 9,
             "overrun_tokens": 1400, "tokens_per_s": 52.08, "hides_reasoning": True,
             "observations": 9, "seen_us": None, "picture_factor": 3.14,
             "sound_factor": 0.0, "context_tokens": 150_000}  # fmt: skip
    out = Console(width=120, record=True)
    out.print(_target_table([known]))
    shown = out.export_text()
    for words in ("openai/m", "812.3", "1400", "52.1", "yes", "-", "3.1x", "150000"):
        assert words in shown


def test_a_target_is_reset_alone(breakeven) -> None:
    words = ("estimates", "reset", "--target", "openai/gpt-4o-mini", "--by", "ann")
    answer = breakeven(*words)
    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout.startswith("Estimates of target openai/gpt-4o-mini are reset.")
    answer = breakeven(*words, "--team", "search")
    assert answer.exit_code == 1
    assert "name either" in answer.stderr
