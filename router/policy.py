"""Which policy a request falls under: the first rule that matches, or the default.

A rule narrows by logical model and by team; an empty list matches all. Model names that end in
`*` match by their beginning, so that pass-through providers can have a policy.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from router.types import Policy, Residency

DEFAULT = Policy(name="default")


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of the policy file, ready to match."""

    name: str
    policy: Policy
    models: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """What rules may ask about a request."""

    model: str
    team: str


def first_match(rules: Iterable[Rule], facts: Facts, *, default: Policy = DEFAULT) -> Policy:
    """The policy of the first rule that matches."""
    for rule in rules:
        if matches(rule, facts):
            return rule.policy
    return default


def matches(rule: Rule, facts: Facts) -> bool:
    if rule.teams and facts.team not in rule.teams:
        return False
    return not rule.models or any(_names(pattern, facts.model) for pattern in rule.models)


def tighten(*residencies: Residency) -> Residency:
    """The strictest of what team, key, model, policy and request say: nobody can loosen it."""
    return Residency.INTERNAL_ONLY if Residency.INTERNAL_ONLY in residencies else Residency.ANY


def _names(pattern: str, model: str) -> bool:
    if pattern.endswith("*"):
        return model.startswith(pattern[:-1])
    return pattern == model
