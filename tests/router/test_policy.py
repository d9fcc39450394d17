"""First match wins; residency only ever tightens."""

import pytest

from router.policy import DEFAULT, Facts, Rule, first_match, matches, tighten
from router.types import Policy, Residency

RULES = (
    Rule(name="code", policy=Policy("code"), models=("code-internal",), teams=("search", "ads")),
    Rule(name="cheap", policy=Policy("cheap"), models=("openai/*", "small")),
    Rule(name="ads", policy=Policy("ads"), teams=("ads",)),
)


@pytest.mark.parametrize(
    ("model", "team", "name"),
    [
        ("code-internal", "search", "code"),
        ("code-internal", "legal", "default"),
        ("openai/gpt-x", "ads", "cheap"),
        ("openai", "ads", "ads"),
        ("small", "legal", "cheap"),
        ("smaller", "legal", "default"),
    ],
)
def test_first_match(model, team, name):
    assert first_match(RULES, Facts(model=model, team=team)).name == name


def test_nothing_matches():
    facts = Facts(model="m", team="t")
    assert first_match((), facts) is DEFAULT
    assert first_match((), facts, default=Policy("mine")).name == "mine"
    assert matches(Rule(name="all", policy=DEFAULT), facts)


def test_residency_cannot_be_loosened():
    loose, tight = Residency.ANY, Residency.INTERNAL_ONLY
    assert tighten() is loose
    assert tighten(loose, loose) is loose
    assert tighten(loose, tight, loose) is tight
