"""Match of a request to its policy, and that policy's terms for each target.

A `PolicyChain` is made once per key and model. Per request, only hours, conditions and shares
remain to be checked. Most rules have none, so most requests need no work here.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.config.conditions import ConditionInput, ConditionUndecided
from gateway.config.rule_fields import bar_target
from gateway.config.settings import ModelSection, PolicyRuleSection
from gateway.fleet.fleet import Target
from gateway.policies.rules import CompiledPolicy, CompiledRule
from router.policy import RoutingRule, match_rule, tighten_policy
from router.reasons import Rejection
from router.shares import NOBODY, Canary, SplitPart, TrafficSplit
from router.types import Preference

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PolicyTerms:
    """Terms of the matching policy; `undecided` are rules above whose condition had no result."""

    rule: CompiledPolicy
    preferred: Preference | None = None
    barred: Mapping[str, Rejection] | None = None  # rejections by candidate
    shadow: "PolicyTerms | None" = None
    undecided: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Link:
    """Rule with its effect on the targets of one model."""

    entry: CompiledRule
    barred: Mapping[str, Rejection]
    split: TrafficSplit | None

    def terms(self, key: str) -> PolicyTerms:
        if self.split is None:
            return PolicyTerms(self.entry.matched, None, self.barred)
        preferred, kept = self.split.of(key)
        return PolicyTerms(self.entry.matched, preferred, {**kept, **self.barred})


class PolicyChain:
    """Rules that requests of one key and model can fall under, in order."""

    def __init__(
        self,
        entries: Sequence[CompiledRule],
        model: ModelSection,
        targets: Sequence[Target],
        barred: Mapping[str, Rejection] = NOBODY,
    ) -> None:
        """`barred` maps candidates to rejections that no rule may lift."""
        places = _places(targets)
        self._links = {entry.rule: _link(entry, model, places, barred) for entry in entries}
        self._rules = tuple(entry.rule for entry in entries)
        self._told: set[str] = set()  # policies whose failed condition was already logged
        # Shared terms, if the first rule has no per-request condition.
        self.constant: PolicyTerms | None = None
        first = self._links[self._rules[0]]
        if len(entries) == 1 and not self._rules[0].is_conditional and first.split is None:
            self.constant = first.terms("")

    def terms(self, asking: Callable[[], ConditionInput], *, wall_us: int, key: str) -> PolicyTerms:
        """Return the terms of the first matching rule; `key` (session or request) picks a share."""
        if self.constant is not None:
            return self.constant
        known: list[ConditionInput] = []

        def check_rule(rule: RoutingRule) -> bool | None:
            entry = self._links[rule].entry
            if entry.calendar is not None and not entry.calendar.is_active(wall_us):
                return False
            if entry.condition is None:
                return True
            if not known:
                known.append(asking())
            try:
                return entry.condition.evaluate(known[0])
            except ConditionUndecided as error:
                self._log_undecided(rule.name, error)
                return None

        ruling = match_rule(self._rules, check_rule)
        terms = self._links[ruling.rule].terms(key)
        if ruling.unknown:
            terms = self._tighten_terms(terms, ruling.unknown)
        if ruling.shadow is not None:
            terms = replace(terms, shadow=self._links[ruling.shadow].terms(key))
        return terms

    def _tighten_terms(self, terms: PolicyTerms, unknown: Sequence[RoutingRule]) -> PolicyTerms:
        barred = dict(terms.barred or NOBODY)
        for rule in unknown:
            barred |= self._links[rule].barred
        policy = tighten_policy(terms.rule.policy, unknown)
        names = tuple(rule.name for rule in unknown)
        return replace(
            terms, rule=replace(terms.rule, policy=policy), barred=barred, undecided=names
        )

    def _log_undecided(self, name: str, error: ConditionUndecided) -> None:
        if name not in self._told:
            self._told.add(name)
            _log.warning("a policy condition failed for a request policy=%s error=%s", name, error)


def _places(targets: Sequence[Target]) -> dict[str, frozenset[str]]:
    """Return candidates by the name that policies use: a pool's name stands for its replicas."""
    found: dict[str, set[str]] = {}
    for target in targets:
        name = target.name if target.pool is None else f"pool:{target.pool}"
        found.setdefault(name, set()).add(target.name)
    return {name: frozenset(names) for name, names in found.items()}


def _link(
    entry: CompiledRule,
    model: ModelSection,
    places: Mapping[str, frozenset[str]],
    always: Mapping[str, Rejection],
) -> _Link:
    source = entry.source
    barred = {
        candidate: reason
        for name, candidates in places.items()
        if (reason := bar_target(source, model, name)) is not None
        for candidate in candidates
    }
    barred |= always
    return _Link(entry, barred or NOBODY, _split(source, places))


def _split(source: PolicyRuleSection, places: Mapping[str, frozenset[str]]) -> TrafficSplit | None:
    """Return the traffic split, or None if no part has a target of this model."""
    canary, parts = source.canary, []
    chosen = None
    if canary is not None and canary.target in places:
        chosen = Canary(places[canary.target], canary.percent / 100.0)
    for name, weight in source.weights.items():
        if name in places:
            parts.append(SplitPart(places[name], weight))
    if chosen is None and not parts:
        return None
    return TrafficSplit(source.name, chosen, tuple(parts))
