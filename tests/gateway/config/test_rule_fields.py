"""The registry of rule fields has every field of a rule, and each restriction acts."""

from dataclasses import fields

import pytest

from gateway.config.rule_fields import (
    POLICY_PARTS,
    RESTRICTIONS,
    RULE_FIELDS,
    RuleRestriction,
    bar_target,
    describe_rule,
    object_to_target,
)
from gateway.config.schema import ModelSection, PolicyRuleSection
from router.filters import first_rejection, forecast_rejection
from router.forecast import UNKNOWN
from router.policy import TIGHTENINGS
from router.reasons import Rejection
from router.request_kinds import RequestKind
from router.types import (
    ApiState,
    Candidate,
    OutputMoments,
    Policy,
    RoutingRequest,
    TargetHealth,
)

# By restriction: what a strict rule says, so that `openai/large` cannot serve it.
STRICT = {
    "residency": {"residency": "internal_only"},
    "candidates": {"candidates": ["openai/small"]},
    "max_usd_per_request": {"max_usd_per_request": 0.01},
    "max_quality_loss": {"max_quality_loss": 0.05},
    "slo.strict": {"slo": {"ttft_ms": 500, "strict": True}},
    "content": {"content": {"card": "keep_inside"}},
}
OPEN = PolicyRuleSection(name="open")
MODEL = ModelSection.model_validate(
    {"targets": ["openai/small", "openai/large"], "quality_loss": {"openai/large": 0.1}}
)
each_restriction = pytest.mark.parametrize(
    "restriction", RESTRICTIONS, ids=lambda restriction: restriction.setting
)


def strict_rule(restriction: RuleRestriction) -> PolicyRuleSection:
    return PolicyRuleSection.model_validate({"name": "strict"} | STRICT[restriction.setting])


def policy_of(rule: PolicyRuleSection) -> Policy:
    return Policy(**{part.name: part.value(rule) for part in POLICY_PARTS})


def rejection_of(rule: PolicyRuleSection) -> Rejection | None:
    """Why `openai/large`, which costs 2 cents at most and is late, cannot serve the rule."""
    request = RoutingRequest(
        model="chat", kind=RequestKind.CHAT,
        prompt_tokens=10, prompt_tokens_bound=10, max_tokens=10, n=1,
        output=OutputMoments(10.0, 100.0, 10.0, 1),
        barred={} if (bar := bar_target(rule, MODEL, "openai/large")) is None
        else {"openai/large": bar},
        kept_for=", ".join(rule.content),  # as where each of them is found
    )  # fmt: skip
    candidate = Candidate(
        name="openai/large", pool=None, features=frozenset(), kinds=frozenset(RequestKind),
        context_tokens=1_000, internal=False, expected_pusd=10**10, bound_pusd=2 * 10**10,
        api=ApiState(health=TargetHealth.HEALTHY, ttft_median_ms=900.0, ttft_sigma=0.1),
    )  # fmt: skip
    late = UNKNOWN._replace(ttft_ms=900.0, ttft_limit_ms=500.0, miss_probability=0.99)
    policy = policy_of(rule)
    return first_rejection(request, policy, candidate) or forecast_rejection(
        policy, candidate, late
    )


def test_every_field_of_a_rule_has_one_entry() -> None:
    names = [field.name for field in RULE_FIELDS]
    assert sorted(names) == sorted(PolicyRuleSection.model_fields)


def test_every_field_of_the_routers_policy_comes_from_one_field_of_a_rule() -> None:
    names = [part.name for part in POLICY_PARTS]
    assert sorted(names) == sorted(field.name for field in fields(Policy))


def test_the_words_of_fields_have_places_of_their_own() -> None:
    places = [field.words.place for field in RULE_FIELDS if field.words is not None]
    assert sorted(places) == list(range(len(places)))


@each_restriction
def test_a_restriction_is_a_setting_of_its_field_and_a_strict_rule_is_known(restriction) -> None:
    (name,) = [field.name for field in RULE_FIELDS if field.restriction is restriction]
    assert restriction.setting.partition(".")[0] == name
    assert restriction.setting in STRICT, "say above what a strict rule is"


@each_restriction
def test_a_strict_rule_leaves_out_what_an_open_one_does_not(restriction) -> None:
    assert rejection_of(OPEN) is None
    rejection = rejection_of(strict_rule(restriction))
    assert rejection is not None
    assert rejection[0] in restriction.reasons


@each_restriction
def test_a_strict_rule_keeps_itself_and_an_open_one_keeps_only_an_open_one(restriction) -> None:
    strict = strict_rule(restriction)
    assert restriction.is_kept(strict, strict)
    assert restriction.is_kept(strict, OPEN)
    assert restriction.is_kept(OPEN, OPEN)
    assert not restriction.is_kept(OPEN, strict)


@each_restriction
def test_a_rule_whose_condition_cannot_be_evaluated_restricts_or_says_why_not(restriction) -> None:
    parts = [field.part for field in RULE_FIELDS if field.restriction is restriction]
    tightens = restriction.bar is not None or any(
        part is not None and part.name in TIGHTENINGS for part in parts
    )
    assert tightens is (restriction.untightened is None)


def test_every_tightening_is_of_a_restriction() -> None:
    names = {
        field.part.name
        for field in RULE_FIELDS
        if field.part is not None and field.restriction is not None
    }
    assert names >= TIGHTENINGS.keys()


@pytest.mark.parametrize(
    ("said", "target", "words"),
    [
        ({"residency": "internal_only"}, "openai/small", "internal_only, but `openai/small` is"),
        ({"residency": "internal_only"}, "pool:own", None),
        ({"candidates": ["pool:own"]}, "openai/small", "`openai/small` is not among this policy's"),
        ({"candidates": ["pool:own"]}, "pool:own", None),
        ({}, "openai/small", None),
    ],
)
def test_a_named_target_that_cannot_serve_the_rule_has_an_objection(said, target, words) -> None:
    found = object_to_target(PolicyRuleSection.model_validate({"name": "a"} | said), target)
    assert (found is None) if words is None else found.startswith(words)


def test_a_rule_is_told_in_words():
    rule = PolicyRuleSection.model_validate(
        {
            "name": "night",
            "match": {
                "models": ["chat"], "teams": ["a", "b"], "when": "stream",
                "times": [{"days": ["fri"], "starts": "22:00", "ends": "06:00"}, {}],
            },
            "candidates": ["pool:a", "x/b", "x/c"],
            "weights": {"pool:a": 3, "x/b": 1},
            "canary": {"target": "x/c", "percent": 0.5},
            "max_quality_loss": 0.02,
            "residency": "internal_only",
            "shadow": True,
        }
    )  # fmt: skip
    assert describe_rule(rule) == (
        "night: shadow: decided and recorded only; models chat; teams a, b; when stream; "
        "fri 22:00 to 06:00 UTC or 00:00 to 24:00 UTC; only pool:a, x/b, x/c; "
        "75 % pool:a, 25 % x/b; "
        "canary 0.5 % to x/c; at most 0.02 of quality lost; stays inside"
    )
    assert describe_rule(PolicyRuleSection(name="rest")) == "rest: every request"
