"""Policy rules of the configuration, compiled once to the router's values.

The first match wins. Without `penalty_usd`, a missed SLO costs five times the request's cost at its
most expensive priced candidate, so that the default scales with the traffic.
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
    """Policy of a rule with values that the router does not need."""

    policy: Policy
    queue_ms: float
    penalty_is_default: bool
    priority: int = 0  # for engines that serve by priority, lowest first

    def priced(self, offered: Sequence[Candidate]) -> Policy:
        """Return the policy with its penalty for this request in pico-USD."""
        if not self.penalty_is_default:
            return self.policy
        dearest = max(
            [candidate.expected_pusd or candidate.avoided_pusd for candidate in offered], default=0
        )
        # Built for each request: a third of the time of `replace`.
        values = [*_values_of(self.policy)]
        values[_PENALTY] = PENALTY_FACTOR * dearest
        return Policy(*values)


class CompiledRule(NamedTuple):
    """Rule of the file with the conditions to check per request."""

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
        """Return the rules that requests of this model and team can fall under.

        The last one always matches.
        """
        found = rules_for(tuple(self._entries), MatchInput(model=model, team=team))
        return tuple(self._entries[rule] for rule in found)

    def match(self, model: str, team: str) -> CompiledPolicy:
        """Return the policy of the rule without per-request conditions, by model and team."""
        return self.entries(model, team)[-1].matched


def _entry(rule: PolicyRuleSection) -> CompiledRule:
    """Compile a rule. Raises `Faulty` for a condition that `crosschecks_policies` rejects."""
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
