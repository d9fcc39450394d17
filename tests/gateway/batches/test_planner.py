"""Rules of a line are those of its key's traffic, without latency; live promises are the pool's."""

from gateway.batches.planner import drop_latency_targets, priority_pools, tightest_slo_of_pools
from gateway.config.settings import parse
from router.idle import TightestSlo

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
