"""Policy rules of the configuration, turned once into the router's values.

First match wins. A rule without `penalty_usd` prices a miss at five times what the request costs
at its dearest priced candidate, so that the default scales with the traffic.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import NamedTuple

from gateway.config.conditions import Condition
from gateway.config.rule_fields import POLICY_PARTS
from gateway.config.schema_policies import TimesSection
from gateway.config.settings import PolicyRuleSection, Settings
from ledger.budgets.windows import zone_named
from router.hours import DAYS, RuleCalendar, WeeklyHours, minute_of
from router.policy import MatchInput, RoutingRule, rules_for
from router.types import Candidate, Policy

PENALTY_FACTOR = 5
PRIORITIES = {"high": -1, "normal": 0, "low": 1}
DEFAULT_RULE = PolicyRuleSection(name="default")
_POLICY_FIELDS = tuple(field.name for field in fields(Policy))
_PENALTY = _POLICY_FIELDS.index("penalty_pusd")
_values_of = attrgetter(*_POLICY_FIELDS)


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A rule's policy with what the router does not need to know."""

    policy: Policy
    queue_ms: float
    penalty_is_default: bool
    priority: int = 0  # for engines that serve by priority: the lowest first

    def priced(self, offered: Sequence[Candidate]) -> Policy:
        """The policy with its penalty in pico-USD for this request."""
        if not self.penalty_is_default:
            return self.policy
        dearest = max(
            [candidate.expected_pusd or candidate.avoided_pusd for candidate in offered], default=0
        )
        # Built for each request: this takes a third of the time of `replace`.
        values = [*_values_of(self.policy)]
        values[_PENALTY] = PENALTY_FACTOR * dearest
        return Policy(*values)


class CompiledRule(NamedTuple):
    """A rule of the file with what is asked of each request."""

    source: PolicyRuleSection
    rule: RoutingRule
    matched: CompiledPolicy
    condition: Condition | None
    calendar: RuleCalendar | None


class RuleSet:
    def __init__(self, settings: Settings) -> None:
        entries = [_entry(rule) for rule in (*settings.policies, DEFAULT_RULE)]
        self._entries = {entry.rule: entry for entry in entries}

    def entries(self, model: str, team: str) -> tuple[CompiledRule, ...]:
        """Those that requests of this model and team can fall under; the last one for certain."""
        found = rules_for(tuple(self._entries), MatchInput(model=model, team=team))
        return tuple(self._entries[rule] for rule in found)

    def match(self, model: str, team: str) -> CompiledPolicy:
        """By model and team alone: the rule that asks nothing of a request."""
        return self.entries(model, team)[-1].matched


def _entry(rule: PolicyRuleSection) -> CompiledRule:
    """Raises `Faulty` for a condition that `crosschecks_policies` would have refused."""
    asked, policy = rule.match, _policy(rule)
    return CompiledRule(
        rule,
        RoutingRule(
            name=rule.name,
            policy=policy,
            models=asked.models,
            teams=asked.teams,
            is_conditional=asked.when is not None or bool(asked.times),
            shadow=rule.shadow,
        ),
        CompiledPolicy(policy, rule.queue_ms, rule.penalty_usd is None, PRIORITIES[rule.priority]),
        None if asked.when is None else Condition(asked.when),
        RuleCalendar(map(weekly_hours, asked.times)) if asked.times else None,
    )


def weekly_hours(times: TimesSection) -> WeeklyHours:
    """Return a section's hours of the week."""
    days = frozenset(DAYS.index(day) for day in times.days)
    return WeeklyHours(
        minute_of(times.starts), minute_of(times.ends), zone_named(times.timezone), days
    )


def _policy(rule: PolicyRuleSection) -> Policy:
    return Policy(**{part.name: part.value(rule) for part in POLICY_PARTS})
