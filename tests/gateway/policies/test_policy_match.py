"""From a chain of rules to one request's terms: shares, names, quality, and what stays closed."""

from collections import Counter
from types import SimpleNamespace

import pytest

from gateway.config.conditions import ConditionInput
from gateway.config.settings import ModelSection, parse
from gateway.policies.policy_match import PolicyChain
from gateway.policies.rules import RuleSet
from router.reasons import Reason
from router.types import Residency

BASE = """
models:
  chat:
    targets: ["pool:main", "pool:new", "openai/small"]
    compare_with: ["openai/small"]
    quality_loss: {"pool:main": 0.01, "openai/small": 0.2}
pools:
  main: {engine: {endpoints: ["http://h:1/v1"]}, gpu: {type: H200}}
  new: {engine: {endpoints: ["http://h:2/v1"]}, gpu: {type: H200}}
providers: {openai: {api_key_env: OPENAI_API_KEY}}
policies: %s
"""
TARGETS = [
    SimpleNamespace(name=name, pool=pool)
    for name, pool in (
        ("pool:main/0", "main"), ("pool:main/1", "main"), ("pool:new/0", "new"),
        ("openai/small", None),
    )
]  # fmt: skip
FRIDAY_NIGHT_US = 1_795_215_600 * 10**6  # 2026-11-20 23:00 UTC


def chain(policies: str) -> PolicyChain:
    settings = parse(BASE % policies, name="x")
    model = settings.models["chat"]
    assert isinstance(model, ModelSection)
    return PolicyChain(RuleSet(settings).entries("chat", "search"), model, TARGETS)


def terms(policies, *, asking=None, wall_us=0, key="k"):
    return chain(policies).terms(
        lambda: asking or ConditionInput(model="chat", team="search"), wall_us=wall_us, key=key
    )


def test_a_rule_that_asks_nothing_is_known_beforehand():
    plain = chain("[{name: a, max_usd_per_request: 1}, {name: b}]")
    assert plain.constant is not None
    assert plain.constant.rule.policy.name == "a"

    def never() -> ConditionInput:
        raise AssertionError("nothing is asked of a request")

    assert plain.terms(never, wall_us=0, key="") is plain.constant


def test_a_condition_and_an_hour_are_asked_of_each_request():
    said = """[
      {name: long, match: {when: "prompt_tokens > 8000"}},
      {name: night, match: {times: [{days: [fri], starts: "22:00", ends: "06:00"}]}}]"""
    long = ConditionInput(model="chat", team="search", prompt_tokens=9000)
    assert terms(said, asking=long).rule.policy.name == "long"
    assert terms(said, wall_us=FRIDAY_NIGHT_US).rule.policy.name == "night"
    assert terms(said, wall_us=FRIDAY_NIGHT_US - 2 * 3600 * 10**6).rule.policy.name == "default"
    assert chain(said).constant is None


def test_names_and_quality_bar_targets_with_their_reasons():
    found = terms('[{name: a, candidates: ["pool:main", "pool:new"], max_quality_loss: 0.05}]')
    assert set(found.barred) == {"pool:new/0", "openai/small"}
    assert found.barred["openai/small"][0] is Reason.CANDIDATES
    assert found.barred["pool:new/0"] == (Reason.QUALITY, "its loss of quality is not stated")
    strict = terms("[{name: a, max_quality_loss: 0.005}]")
    assert strict.barred["pool:main/1"] == (Reason.QUALITY, "loses 0.01, at most 0.005")


def test_shares_lead_to_all_engines_of_a_pool_and_follow_the_key():
    said = '[{name: a, weights: {"pool:main": 3, "pool:new": 1}}]'
    shared = chain(said)
    found = Counter(
        shared.terms(lambda: ConditionInput("", ""), wall_us=0, key=f"s{i}").preferred
        for i in range(4000)
    )
    shares = {tuple(sorted(key.names)): count for key, count in found.items()}
    assert set(shares) == {("pool:main/0", "pool:main/1"), ("pool:new/0",)}
    assert 850 < shares["pool:new/0",] < 1150
    again = chain(said)
    for i in range(50):
        mine = shared.terms(lambda: ConditionInput("", ""), wall_us=0, key=f"s{i}")
        assert again.terms(lambda: ConditionInput("", ""), wall_us=9, key=f"s{i}") == mine


def test_a_canary_is_barred_for_everybody_else():
    said = '[{name: a, canary: {target: "pool:new", percent: %s}}]'
    assert terms(said % 100).preferred.names == {"pool:new/0"}
    assert terms(said % 100).preferred.reason is Reason.CANARY
    nobody = terms(said % 0)
    assert nobody.preferred is None
    assert nobody.barred["pool:new/0"] == (Reason.CANARY, "serves 0 % of the requests")


def test_a_shadow_watches_and_the_next_rule_acts():
    found = terms('[{name: watch, shadow: true, candidates: ["pool:new"]}, {name: act}]')
    assert found.rule.policy.name == "act"
    assert not found.barred
    assert found.shadow.rule.policy.name == "watch"
    assert "openai/small" in found.shadow.barred
    assert chain("[{name: act}, {name: watch, shadow: true}]").constant.shadow is None


SECRET = """[{name: secret, residency: internal_only, max_usd_per_request: 0.01,
  candidates: ["pool:main"], match: {when: 'tags.class == "secret"'}}, {name: open}]"""


@pytest.mark.parametrize(
    ("tags", "name", "inside"),
    [
        ({"class": "secret"}, "secret", True),
        ({}, "open", True),  # the condition cannot be told: passed over, and closed
        ({"class": "public"}, "open", False),
    ],
)
def test_a_condition_that_fails_opens_nothing(tags, name, inside):
    asking = ConditionInput(model="chat", team="search", tags=tags)
    found = terms(SECRET, asking=asking)
    policy = found.rule.policy
    assert policy.name == name
    assert (policy.residency is Residency.INTERNAL_ONLY) is inside
    assert (policy.max_cost_pusd == 10**10) is inside
    assert ("openai/small" in found.barred) is inside
    assert found.undecided == (("secret",) if not tags else ())


def test_a_shadow_whose_condition_fails_closes_nothing():
    found = terms(SECRET.replace("name: secret,", "name: secret, shadow: true,"))
    assert (found.rule.policy.name, found.shadow, found.undecided) == ("open", None, ())
    assert found.rule.policy.residency is Residency.ANY
    assert "openai/small" not in found.barred


def test_a_failing_condition_is_told_once(caplog):
    failing = chain(SECRET)
    for _ in range(3):
        failing.terms(lambda: ConditionInput(model="chat", team="search"), wall_us=0, key="")
    assert [record.getMessage()[:53] for record in caplog.records] == [
        "a policy condition failed for a request policy=secret"
    ]
