"""Policy rules: first match wins, a default always does, a miss has a price."""

from dataclasses import fields, replace

import pytest

from gateway.config.settings import parse
from gateway.policies.rules import PENALTY_FACTOR, CompiledPolicy, RuleSet
from router.request_kinds import RequestKind
from router.types import Candidate, InfeasibleAction, Policy, Residency

RULES = """
models:
  chat: {targets: ["openai/x"]}
  code: {targets: ["openai/x"]}
providers: {openai: {}}
policies:
  - name: code
    match: {models: [code]}
    slo: {ttft_ms: 100, tpot_ms: 30, attainment: 0.99}
    kv_headroom_floor: "off"
    penalty_usd: 0.002
    otherwise: queue
    queue_ms: 750
  - {name: search, match: {teams: [search]}, max_usd_per_request: 0.05}
"""


def candidate(expected: int | None, avoided: int) -> Candidate:
    return Candidate(
        name="x",
        pool=None,
        features=frozenset(),
        kinds=frozenset(RequestKind),
        context_tokens=1,
        internal=False,
        expected_pusd=expected,
        bound_pusd=None,
        avoided_pusd=avoided,
    )


def test_the_first_match_wins_and_nothing_is_left_unmatched() -> None:
    rules = RuleSet(parse(RULES, name="x"))
    assert rules.match("code", "search").policy.name == "code"
    assert rules.match("chat", "search").policy.name == "search"
    assert rules.match("chat", "other").policy.name == "default"


@pytest.mark.parametrize("shadow", ["false", "true"])
def test_a_narrow_rule_called_default_is_for_nobody_else(shadow) -> None:
    narrow = f"{{teams: [a]}}, residency: internal_only, shadow: {shadow}"
    text = RULES.partition("policies:")[0] + f"policies: [{{name: default, match: {narrow}}}]"
    rules = RuleSet(parse(text, name="x"))
    matched = rules.match("chat", "b")
    assert (matched.policy.name, matched.policy.residency) == ("default", Residency.ANY)
    inside = rules.entries("chat", "a")[0].matched.policy.residency
    assert inside is Residency.INTERNAL_ONLY


def test_a_rule_becomes_the_routers_policy() -> None:
    matched = RuleSet(parse(RULES, name="x")).match("code", "any")
    policy = matched.priced([])
    assert (policy.slo.ttft_ms, policy.slo.tpot_ms, policy.slo.attainment) == (100, 30, 0.99)
    assert policy.kv_headroom_floor is None
    assert policy.penalty_pusd == 2 * 10**9
    assert policy.otherwise is InfeasibleAction.QUEUE
    assert matched.queue_ms == 750


def test_a_miss_without_a_price_costs_five_requests() -> None:
    matched = RuleSet(parse(RULES, name="x")).match("chat", "search")
    assert matched.policy.max_cost_pusd == 5 * 10**10
    priced = matched.priced([candidate(0, 700), candidate(300, 0), candidate(None, 0)])
    assert priced.penalty_pusd == PENALTY_FACTOR * 700


def test_a_price_of_a_miss_changes_no_other_field_of_the_policy() -> None:
    said = Policy(**{field.name: f"another {field.name}" for field in fields(Policy)})
    policy = CompiledPolicy(said, 0.0, penalty_is_default=True).priced([candidate(300, 0)])
    assert policy == replace(said, penalty_pusd=PENALTY_FACTOR * 300)
