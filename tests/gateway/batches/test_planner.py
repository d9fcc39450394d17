"""Rules of a line are those of its key's traffic, without latency; live promises are the pool's."""

from contextvars import ContextVar
from types import SimpleNamespace

import pytest

from gateway.batches.planner import (
    LinePlanner,
    drop_latency_targets,
    priority_pools,
    tightest_slo_of_pools,
)
from gateway.config.settings import parse
from gateway.errors import RequestError
from gateway.request.stage_turns import StageTurn
from router.idle import TightestSlo
from router.reasons import Reason
from router.types import Decision, InfeasibleAction

TEXT = """
models:
  a: {targets: ["pool:one", openai/x], compare_with: [openai/x]}
  b: {targets: ["pool:one", "pool:two"], compare_with: [openai/x]}
  other-name: {same_as: b}
  api: {targets: [openai/x]}
pools:
  one: &pool {engine: {endpoints: ["http://127.0.0.1:1/v1"]}, gpu: {type: CPU}}
  two: *pool
  three: *pool
providers: {openai: {base_url: "http://127.0.0.1:1/v1"}}
policies:
  - {name: fast, match: {models: [a]}, slo: {ttft_ms: 200}, kv_headroom_floor: 0.3,
     otherwise: queue}
  - {name: paced, match: {models: [b]}, slo: {tpot_ms: 20, ttft_ms: 5000}}
  - {name: cap, max_usd_per_request: 0.5}
"""


def test_each_pool_has_its_tightest_promise() -> None:
    found = tightest_slo_of_pools(parse(TEXT, name="t"))
    usual = TightestSlo()
    assert found["one"] == TightestSlo(200.0, 20.0)
    assert found["two"] == TightestSlo(usual.ttft_ms, 20.0)
    assert "three" not in found


def test_only_engines_that_serve_by_priority_are_told_one() -> None:
    assert priority_pools(parse(TEXT, name="t")) == frozenset()
    for written in ("[--scheduling-policy, priority]", "[--scheduling-policy=priority]"):
        changed = TEXT.replace("{endpoints: [", f"{{flags: {written}, endpoints: [")
        assert priority_pools(parse(changed, name="t")) == {"one", "two", "three"}
    other = TEXT.replace("{endpoints: [", "{flags: [--scheduling-policy, fcfs], endpoints: [")
    assert priority_pools(parse(other, name="t")) == frozenset()


def test_what_is_left_of_a_rule() -> None:
    rules = drop_latency_targets(parse(TEXT, name="t")).policies
    assert all(rule.slo.ttft_ms is None and rule.slo.tpot_ms is None for rule in rules)
    assert {rule.otherwise for rule in rules} == {"reject"}
    assert (rules[0].kv_headroom_floor, rules[0].match.models) == (0.3, ("a",))
    assert rules[2].max_usd_per_request is not None


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("spill", [False, True])
@pytest.mark.parametrize("final", [False, True])
def test_a_line_that_may_spill_goes_on_to_later_stages_before_it_waits(
    staged, spill, final
) -> None:
    busy = Decision("p", (), (), Reason.TTFT, InfeasibleAction.REJECT)
    plan = SimpleNamespace(decision=busy, route=SimpleNamespace(is_staged=staged))
    plans = SimpleNamespace(plan=lambda *_, **__: plan)
    ticket: ContextVar = ContextVar("ticket")
    ticket.set(SimpleNamespace(spill=spill))
    planner = LinePlanner(plans, {}, ticket)
    turn = StageTurn(plan.route, is_final=True) if final else None

    def planned():
        return planner.plan("r", None, None, clock=None, sticky=None, turn=turn)

    if staged and spill and not final:
        assert planned() is plan
    else:
        with pytest.raises(RequestError) as told:
            planned()
        assert told.value.kind == "not_idle"
