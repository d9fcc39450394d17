"""`breakeven target` and `route`: every mistake one clear line, every success told as it is."""

import json

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app

CONFIG = """
state_dir: {state}
models: {{chat: {{targets: ["pool:a", openai/gpt-4o-mini], compare_with: [openai/gpt-4o-mini]}}}}
pools:
  a: {{engine: {{kind: simulated, model: x, replicas: 2}}, gpu: {{type: H200}}}}
providers: {{openai: {{api_key_env: OPENAI_API_KEY}}}}
"""


@pytest.fixture
def breakeven(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "breakeven.yaml").write_text(CONFIG.format(state=tmp_path / "state"))
    return lambda *words: CliRunner().invoke(app, words)


def test_a_target_is_taken_out_and_put_back(breakeven) -> None:
    answer = breakeven("target", "disable", "pool:a/1", "--for", "30m", "--by", "ann",
                       "--note", "a fan")  # fmt: skip
    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout.startswith("pool:a/1: disabled until 2")
    assert "follow within 2 s" in answer.stdout
    listed = json.loads(breakeven("target", "list", "--json").stdout)
    assert listed["targets"] == [
        "openai", "openai/gpt-4o-mini", "pool:a", "pool:a/0", "pool:a/1",
    ]  # fmt: skip
    (item,) = listed["overrides"]
    assert (item["target"], item["says"], item["by"], item["note"]) == (
        "pool:a/1", "disabled", "ann", "a fan",
    )  # fmt: skip
    assert item["until"].endswith(" UTC")
    assert "pool:a/1" in breakeven("target", "list").stdout
    freed = breakeven("target", "enable", "pool:a")
    assert (freed.exit_code, freed.stdout.splitlines()[0]) == (
        0, "pool:a/1: nothing is held over it.",
    )  # fmt: skip
    assert json.loads(breakeven("target", "list", "--json").stdout)["overrides"] == []
    assert "No override is active" in breakeven("target", "list").stdout


def test_a_route_is_forced_and_released(breakeven) -> None:
    answer = breakeven("route", "force", "api", "--for", "2h", "--json")
    (item,) = json.loads(answer.stdout)["overrides"]
    assert (item["model"], item["says"]) == ("*", "api")
    assert "all models" in breakeven("route", "list").stdout
    assert breakeven("route", "release").exit_code == 0
    assert breakeven("route", "list").stdout == "No route is forced.\n"


def test_who_is_left_without_a_target_is_told(breakeven) -> None:
    breakeven("route", "force", "own")
    answer = breakeven("target", "disable", "pool:a")
    assert answer.exit_code == 0
    assert "model `chat` has no enabled target" in answer.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("target", "disable", "pool:b"), "there is no target `pool:b`"),
        (("target", "disable", "pool:a", "--for", "soon"), "invalid duration `soon`: write 90s"),
        (("target", "enable", "pool:a"), "target `pool:a` is not disabled"),
        (("route", "force", "api", "--model", "x"), "no model named `x`"),
        (("route", "release"), "is not forced"),
    ],
)
def test_mistakes_are_one_line(breakeven, words, said) -> None:
    breakeven("target", "list")
    answer = breakeven(*words)
    assert answer.exit_code == 1
    assert said in answer.stderr
    assert answer.stdout == ""
