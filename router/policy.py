"""Policy of a request: the first rule that matches, or the default.

A rule narrows by logical model and by team; an empty list matches all. Model names that end in `*`
match by prefix, so that pass-through providers can have a policy. Other conditions (hours, a
condition on the request) are evaluated for each request by a callback: `match_rule`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from router.content import join_terms
from router.types import Policy, Residency


@dataclass(frozen=True, slots=True, eq=False)
class RoutingRule:
    """One entry of the policy file, ready to match; rules compare by identity.

    `is_conditional` is true if a condition must be evaluated for each request. A `shadow` rule is
    decided and recorded, and never acts.
    """

    name: str
    policy: Policy
    models: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    is_conditional: bool = False
    shadow: bool = False


@dataclass(frozen=True, slots=True)
class MatchInput:
    """The facts of a request that rules may test."""

    model: str
    team: str


def is_match(rule: RoutingRule, facts: MatchInput) -> bool:
    if rule.teams and facts.team not in rule.teams:
        return False
    return not rule.models or any(_names(pattern, facts.model) for pattern in rule.models)


def is_covering(upper: RoutingRule, lower: RoutingRule) -> bool:
    """Return whether `upper`, above `lower`, takes every request that `lower` matches.

    A conditional `upper` may not match, and rules below a shadow still act, so both return false.
    """
    if upper.is_conditional or (upper.shadow and not lower.shadow):
        return False
    if upper.teams and not (lower.teams and set(lower.teams) <= set(upper.teams)):
        return False
    if not upper.models:
        return True
    # A pattern that starts with another pattern's prefix is covered by it, as a name is.
    return bool(lower.models) and all(
        any(_names(pattern, name) for pattern in upper.models) for name in lower.models
    )


def rules_for(rules: Sequence[RoutingRule], facts: MatchInput) -> tuple[RoutingRule, ...]:
    """Return the rules that requests of this model and team can match; one always matches.

    Only `when` and `calendar` remain to be evaluated for each request. A shadow rule never ends the
    list.
    """
    found: list[RoutingRule] = []
    for rule in rules:
        if is_match(rule, facts):
            found.append(rule)
            if not rule.is_conditional and not rule.shadow:
                break
    return tuple(found)


class RuleMatch(NamedTuple):
    """The rule that acts, the first shadow above it, and rules with an undecided condition."""

    rule: RoutingRule
    shadow: RoutingRule | None = None
    unknown: tuple[RoutingRule, ...] = ()


def match_rule(
    rules: Sequence[RoutingRule], ask: Callable[[RoutingRule], bool | None]
) -> RuleMatch:
    """Return the first rule that applies. `ask` evaluates a condition, `None` if undecided.

    An undecided rule is skipped, and `tighten_policy` then applies its restrictions. A shadow rule
    restricts nothing, decided or not. The last rule of `rules` acts if no other does.
    """
    shadow: RoutingRule | None = None
    unknown: list[RoutingRule] = []
    for rule in rules:
        held = ask(rule) if rule.is_conditional else True
        if held is None:
            unknown += () if rule.shadow else (rule,)
        elif held and rule.shadow:
            shadow = shadow or rule
        elif held:
            return RuleMatch(rule, shadow, tuple(unknown))
    return RuleMatch(rules[-1], shadow, tuple(unknown))


def tighten_policy(policy: Policy, unknown: Sequence[RoutingRule]) -> Policy:
    """Return the policy made as strict as the strictest of these rules, by `TIGHTENINGS`."""
    policies = (policy, *(rule.policy for rule in unknown))
    return replace(
        policy,
        **{
            name: strictest([getattr(each, name) for each in policies])
            for name, strictest in TIGHTENINGS.items()
        },
    )


def tighten(*residencies: Residency) -> Residency:
    """Return the strictest residency of team, key, model, policy and request."""
    return Residency.INTERNAL_ONLY if Residency.INTERNAL_ONLY in residencies else Residency.ANY


def _least_cap(caps: Iterable[int | None]) -> int | None:
    return min((cap for cap in caps if cap is not None), default=None)


# The strictest value of a field of `Policy` among several policies, for each that protects.
TIGHTENINGS: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "residency": lambda residencies: tighten(*residencies),
    "max_cost_pusd": _least_cap,
    "content": join_terms,
}


def _names(pattern: str, model: str) -> bool:
    if pattern.endswith("*"):
        return model.startswith(pattern[:-1])
    return pattern == model
