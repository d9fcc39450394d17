"""`breakeven fleet`: what is shown is what the books have; a pause is held with its author."""

import json
import time

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app
from ledger.database import make_engine
from ledger.economics.scaling_score import InstanceRent, PlanSum, ScoredSpan
from ledger.fleet.fleet_lease import take_lease
from ledger.fleet.fleet_records import FleetChange, FleetInstance, FleetPlanRecord, PlannerMemory
from ledger.fleet.scaling_books import ScalingBooks

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
HOUR_US = 3_600_000_000


@pytest.fixture
def breakeven(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "breakeven.yaml").write_text(CONFIG.format(state=tmp_path / "state"))
    return lambda *words: CliRunner().invoke(app, words)


@pytest.fixture
def planned(breakeven, tmp_path):
    """A ledger with a plan, a change that earned, an engine, an orphan and a scored hour."""
    breakeven("fleet", "pause", "a")  # makes the ledger
    breakeven("fleet", "resume", "a")
    engine, now_us = make_engine(f"sqlite:///{tmp_path / 'state' / 'ledger.db'}"), time.time_ns()
    now_us //= 1000
    fence = take_lease(engine, "a", "h", now_us=now_us, length_us=HOUR_US)
    books = ScalingBooks(engine, "a", fence, now_us=now_us)
    books.record_plan(
        FleetPlanRecord("a", now_us, "advise", 2, 1, "earns_rent", "engine 2 earns its rent", {
            "horizon_s": 3600.0, "last": None,
            "next": {"place": 2, "value_pusd": 4 * USD, "rent_pusd": 3 * USD},
            "forecast": [{"name": "chat", "horizon_s": 180.0, "mean": 2.5, "low": 1.0,
                          "high": 4.0}],
            "alternatives": [{"engines": 1, "rent_pusd": 3 * USD, "api_pusd": 5 * USD,
                              "start_pusd": 0}],
        })
    )  # fmt: skip
    rent = InstanceRent(3 * USD)
    books.intend(
        FleetChange("a", now_us, "act", "start", "a.0.k", 1, "earns_rent", "why it was started",
                    2 * USD, now_us + HOUR_US),
        FleetInstance("a.0.k", "a", 0, True, rent, now_us - HOUR_US),
    )  # fmt: skip
    books.add(FleetInstance("a!i-9", "a", None, False, rent, now_us - HOUR_US, name="i-9"))
    span = ScoredSpan(now_us - HOUR_US, HOUR_US, 100, PlanSum(3 * USD, USD), PlanSum(3 * USD, 0),
                      (20 * USD, USD, 0), 3 * USD, 0, 2)  # fmt: skip
    books.score(PlannerMemory(now_us, {}, []), [span], {1: USD // 2})
    engine.dispose()
    return breakeven


def test_status_names_engines_orphans_and_what_scaling_earned(planned) -> None:
    answer = planned("fleet", "status", "--json")
    (pool,) = json.loads(answer.stdout)
    assert (pool["pool"], pool["mode"], pool["paused"]) == ("a", "advise", None)
    assert sorted(entry["owned"] for entry in pool["engines"]) == [False, True]
    assert sum(day["against_fixed_pusd"] for day in pool["days"]) == 2 * USD
    assert sum(day["against_api_pusd"] for day in pool["days"]) == 16 * USD
    assert sum(day["advice_pusd"] for day in pool["days"]) == USD
    shown = planned("fleet", "status").stdout
    assert "engine 2 earns its rent" in shown
    assert "ORPHAN" in shown
    assert "$16.00" in shown


def test_engines_of_a_pool_that_is_sized_no_longer_are_still_named(planned, tmp_path) -> None:
    path = tmp_path / "breakeven.yaml"
    path.write_text(path.read_text().replace("    scale: {max: 2}\n", ""))
    shown = " ".join(planned("fleet", "status").stdout.split())
    assert "a: no longer sized" in shown
    assert "a.0.k" in shown
    assert planned("fleet", "explain", "a").exit_code == 0
    assert "there is no pool `a` with `scale`" in planned("fleet", "pause", "a").output


def test_a_plan_is_shown_with_its_sums(planned) -> None:
    shown = planned("fleet", "plan").stdout
    assert "engine 2 (next) avoids $4.00 an hour and costs $3.00" in shown
    assert "chat: 2.50 requests/s (1.00 to 4.00) in 3 min" in shown
    assert "$8.00" in shown


def test_each_change_is_explained(planned) -> None:
    (change,) = json.loads(planned("fleet", "explain", "a", "--json").stdout)
    assert (change["expected_pusd"], change["realised_pusd"]) == (2 * USD, USD // 2)
    shown = planned("fleet", "explain", "a").stdout
    assert "$2.00" in shown
    assert "$0.50" in shown


def test_a_pause_is_held_until_it_is_taken_back(breakeven) -> None:
    answer = breakeven("fleet", "pause", "a", "--for", "2h", "--by", "ann", "--note", "audit")
    assert answer.exit_code == 0, answer.stderr
    assert "Pool a is paused until `breakeven fleet resume a` or 2" in answer.stdout
    (pool,) = json.loads(breakeven("fleet", "status", "--json").stdout)
    assert pool["paused"] == "ann: audit"
    assert "fleet of pool a" in breakeven("target", "list").stdout
    assert "fleet of pool a" in breakeven("route", "list").stdout
    assert breakeven("fleet", "resume", "a").stdout == "Pool a is planned again.\n"
    again = breakeven("fleet", "resume", "a")
    assert (again.exit_code, again.stderr) == (
        1, "breakeven: pool a is not paused; `breakeven fleet status` lists paused pools\n",
    )  # fmt: skip
    assert "All pools are paused" in breakeven("fleet", "pause").stdout


def test_a_pool_that_does_not_size_itself_is_named(breakeven) -> None:
    answer = breakeven("fleet", "explain", "b")
    assert answer.exit_code == 1
    assert "there is no pool `b` with `scale`; there are a" in answer.stderr


def test_before_a_plan_it_says_so(breakeven) -> None:
    breakeven("fleet", "pause", "a")
    assert "No plan was made yet: what" in breakeven("fleet", "status").stdout
    assert "a: the pool has no plan yet." in breakeven("fleet", "plan").stdout
    assert "No engine was started or stopped" in breakeven("fleet", "explain", "a").stdout


@pytest.mark.parametrize("verb", ["plan", "status"])
def test_without_a_pool_that_sizes_itself_the_setting_is_named(breakeven, tmp_path, verb):
    path = tmp_path / "breakeven.yaml"
    path.write_text(path.read_text().replace("    scale: {max: 2}\n", ""))
    answer = breakeven("fleet", verb)
    assert answer.exit_code == 0
    assert "set `pools.NAME.scale`" in answer.stdout
