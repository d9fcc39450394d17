"""First match wins; residency only ever tightens."""

import pytest

from router.policy import (
    MatchInput,
    RoutingRule,
    is_covering,
    is_match,
    match_rule,
    rules_for,
    tighten,
    tighten_policy,
)
from router.types import Policy, Residency

RULES = (
    RoutingRule(
        name="code", policy=Policy("code"), models=("code-internal",), teams=("search", "ads")
    ),
    RoutingRule(name="cheap", policy=Policy("cheap"), models=("openai/*", "small")),
    RoutingRule(name="ads", policy=Policy("ads"), teams=("ads",)),
)


@pytest.mark.parametrize(
    ("model", "team", "name"),
    [
        ("code-internal", "search", "code"),
        ("code-internal", "legal", None),
        ("openai/gpt-x", "ads", "cheap"),
        ("openai", "ads", "ads"),
        ("small", "legal", "cheap"),
        ("smaller", "legal", None),
    ],
)
def test_first_match(model, team, name):
    found = rules_for(RULES, MatchInput(model=model, team=team))
    assert next((rule.name for rule in found), None) == name


def test_nothing_matches():
    facts = MatchInput(model="m", team="t")
    assert rules_for((), facts) == ()
    assert is_match(RoutingRule(name="all", policy=Policy(name="default")), facts)


def test_residency_cannot_be_loosened():
    loose, tight = Residency.ANY, Residency.INTERNAL_ONLY
    assert tighten() is loose
    assert tighten(loose, loose) is loose
    assert tighten(loose, tight, loose) is tight


def rules(*said):
    """`name` or `name?` (asks of the request) or `name!` (shadow), or both."""
    return tuple(
        RoutingRule(
            name=line.strip("?!"),
            policy=Policy(line.strip("?!")),
            is_conditional="?" in line,
            shadow="!" in line,
        )
        for line in said
    )


def test_a_chain_ends_with_the_first_rule_that_asks_nothing():
    (only,) = rules("only")
    assert rules_for((only, *rules("never")), MatchInput("m", "t")) == (only,)
    names = [rule.name for rule in rules_for(rules("a?", "b!", "c", "d"), MatchInput("m", "t"))]
    assert names == ["a", "b", "c"]
    assert [rule.name for rule in rules_for(RULES, MatchInput("code-internal", "ads"))] == ["code"]


@pytest.mark.parametrize(
    ("said", "answers", "acts", "shadow", "unknown"),
    [
        (("a?", "b"), {"a": True}, "a", None, ()),
        (("a?", "b"), {"a": False}, "b", None, ()),
        (("a?", "b"), {"a": None}, "b", None, ("a",)),
        (("a!", "b!", "c"), {}, "c", "a", ()),
        (("a?!", "b!", "c"), {"a": False}, "c", "b", ()),
        (("a?!", "b?", "c"), {"a": None, "b": None}, "c", None, ("b",)),  # a shadow never acts
        (("a", "b!"), {}, "a", None, ()),  # a shadow below who acts has nothing to watch
    ],
)
def test_who_acts_and_who_watches(said, answers, acts, shadow, unknown):
    ruling = match_rule(rules(*said), lambda rule: answers[rule.name])
    assert ruling.rule.name == acts
    assert (None if ruling.shadow is None else ruling.shadow.name) == shadow
    assert tuple(rule.name for rule in ruling.unknown) == unknown


def test_what_cannot_be_told_stays_closed():
    open_, inside = (
        Policy("open", max_cost_pusd=500),
        Policy("x", residency=Residency.INTERNAL_ONLY),
    )
    dear, cheap = (
        RoutingRule("d", Policy("d", max_cost_pusd=900)),
        RoutingRule("c", Policy("c", max_cost_pusd=5)),
    )
    assert tighten_policy(open_, [RoutingRule("x", inside)]).residency is Residency.INTERNAL_ONLY
    assert tighten_policy(open_, [dear]) == open_
    assert tighten_policy(open_, [dear, cheap]).max_cost_pusd == 5
    assert tighten_policy(inside, [dear]).residency is Residency.INTERNAL_ONLY
    assert tighten_policy(Policy("p"), [RoutingRule("q", Policy("q"))]).max_cost_pusd is None


def rule(models=(), teams=(), **asked) -> RoutingRule:
    return RoutingRule("", Policy(name="default"), tuple(models), tuple(teams), **asked)


@pytest.mark.parametrize(
    ("upper", "lower", "is_covered"),
    [
        (rule(), rule(["a"], ["x"]), True),
        (rule(["a"]), rule(), False),
        (rule(["a"]), rule(["a"], ["x"]), True),
        (rule(["a"], ["x"]), rule(["a"]), False),
        (rule(["a", "b"], ["x", "y"]), rule(["b"], ["y"], is_conditional=True), True),
        (rule(["a"]), rule(["a", "b"]), False),
        (rule(["open*"]), rule(["openai/*", "open"]), True),
        (rule(["openai/*"]), rule(["open*"]), False),
        (rule(["a"]), rule(["a*"]), False),
        (rule(is_conditional=True), rule(["a"]), False),
        (rule(shadow=True), rule(["a"]), False),
        (rule(shadow=True), rule(["a"], shadow=True), True),
        (rule(["a"]), rule(["a"], shadow=True), True),
    ],
)
def test_what_a_rule_leaves_nothing_of(upper, lower, is_covered):
    assert is_covering(upper, lower) is is_covered
