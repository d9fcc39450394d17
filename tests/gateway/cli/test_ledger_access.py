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


def test_a_stage_before_another_passes_on_and_does_not_reject(config: Path) -> None:
    text = config.read_text().replace(
        "targets: [openai/gpt-4o-mini], compare", "targets: ['pool:own'], then: "
        "[{after: CAUSE, targets: [openai/gpt-4.1]}], compare"
    )  # fmt: skip
    text += """
pools:
  own:
    engine: {kind: vllm, served_name: own, endpoints: ["http://127.0.0.1:9/v1"]}
    gpu: {type: H100}
"""
    served, refused = (
        _explained(config, text.replace("CAUSE", cause)) for cause in ("failure", "context")
    )
    passed_on = "before: the later stages are considered"
    assert any(line.endswith(passed_on) for line in served)
    assert not any("reject" in line for line in served)
    assert "policy default: no target is feasible: engine state unknown (unknown_state)" in refused
    assert [line for line in refused if "reject" in line] == [
        "the policy rejects it (`otherwise: reject`)"
    ]


def _explained(config: Path, text: str) -> list[str]:
    config.write_text(text)
    answer = CliRunner().invoke(app, [*SUPPOSED, "--config", str(config)])
    assert answer.exit_code == 0, answer.stderr
    return answer.stdout.splitlines()
