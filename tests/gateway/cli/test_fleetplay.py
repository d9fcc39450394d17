"""`breakeven fleet play`: what it shows, and what it says where nothing can be played."""

import json

import pytest
from typer.testing import CliRunner

from gateway.cli import fleetplay
from gateway.cli.app import app
from ledger.economics.scaling_score import PlanSum, ScoredSpan
from ledger.reports.scaling_read import EarnedDay

CONFIG = """
state_dir: {state}
models: {{chat: {{targets: ["pool:a", openai/gpt-4o-mini], compare_with: [openai/gpt-4o-mini]}}}}
pools:
  a:
    engine: {{kind: simulated, model: x, replicas: 2}}
    gpu: {{type: H200, billing: on_demand, usd_per_hour: 3}}
    scale: {{max: 2}}
providers: {{openai: {{api_key_env: OPENAI_API_KEY}}}}
"""
USD = 10**12


@pytest.fixture
def breakeven(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "breakeven.yaml").write_text(CONFIG.format(state=tmp_path / "state"))

    def run(*words: str):
        return CliRunner().invoke(app, words)

    run("fleet", "pause", "a")  # makes the ledger
    return run


def test_days_are_shown_in_dollars_beside_fleets_that_never_change(breakeven, monkeypatch):
    asked = {}

    def replay(_connection, setup, span, make):
        asked.update(pool=setup.pool, days=(span[1] - span[0]) / 86_400e6, planner=make())
        span = ScoredSpan(
            0, 86_400 * 10**6, 1200, PlanSum(144 * USD, 0), PlanSum(70 * USD, 5 * USD),
            (90 * USD, 20 * USD, 0), 72 * USD, 0, 2,
        )  # fmt: skip
        return [EarnedDay("2026-11-28", span)]

    monkeypatch.setattr(fleetplay, "replay_traffic", replay)
    done = breakeven("fleet", "play", "a", "--days", "3")
    assert done.exit_code == 0, done.output
    for words in ("2026-11-28", "1,200", "$75.00", "$144.00", "$90.00"):
        assert words in done.output
    assert (asked["pool"], asked["days"]) == ("a", 3.0)
    assert asked["planner"].terms.pool == "a"
    (day,) = json.loads(breakeven("fleet", "play", "a", "--json").output)
    assert day["planned"] == {"rent_pusd": 70 * USD, "api_pusd": 5 * USD, "total_pusd": 75 * USD}
    assert day["fixed"]["engines"] == 2
    assert "ran" not in day


def test_what_cannot_be_played_is_said_with_its_cure(breakeven):
    unknown = breakeven("fleet", "play", "b")
    assert unknown.exit_code == 1
    assert "there are a" in unknown.output + str(getattr(unknown, "stderr", ""))
    silent = breakeven("fleet", "play", "a", "--days", "1")
    assert silent.exit_code == 1
    assert "no traffic" in silent.output + str(getattr(silent, "stderr", ""))
