"""Policy rules of the configuration, turned once into the router's values.

First match wins. A rule without `penalty_usd` prices a miss at five times what the request costs
at its dearest priced candidate, so that the default scales with the traffic.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.candidates import Frozen
from gateway.settings import PolicyRule, Settings
from ledger.money import usd_to_pusd
from router.policy import Facts, Rule, first_match
from router.types import Otherwise, Policy, Residency, Slo

PENALTY_FACTOR = 5
DEFAULT_RULE = PolicyRule(name="default")


@dataclass(frozen=True, slots=True)
class Matched:
    """A rule's policy with what the router does not need to know."""

    policy: Policy
    queue_ms: float
    penalty_is_default: bool

    def priced(self, frozen: Sequence[Frozen]) -> Policy:
        """The policy with its penalty in pico-USD for this request."""
        if not self.penalty_is_default:
            return self.policy
        dearest = 0
        for entry in frozen:
            candidate = entry.candidate
            dearest = max(dearest, candidate.expected_pusd or candidate.avoided_pusd)
        known = self.policy
        return Policy(
            known.name,
            known.slo,
            known.kv_headroom_floor,
            PENALTY_FACTOR * dearest,
            known.max_cost_pusd,
            known.otherwise,
            known.residency,
        )


class Rules:
    def __init__(self, settings: Settings) -> None:
        rules = (*settings.policies, DEFAULT_RULE)  # the last one matches everything
        self._rules = tuple(
            Rule(
                name=rule.name,
                policy=_policy(rule),
                models=rule.match.models,
                teams=rule.match.teams,
            )
            for rule in rules
        )
        self._matched = {
            rule.name: Matched(_policy(rule), rule.queue_ms, rule.penalty_usd is None)
            for rule in reversed(rules)  # a rule of the file called "default" wins over ours
        }

    def match(self, model: str, team: str) -> Matched:
        return self._matched[first_match(self._rules, Facts(model=model, team=team)).name]


def _policy(rule: PolicyRule) -> Policy:
    floor = rule.kv_headroom_floor
    cap = rule.max_usd_per_request
    return Policy(
        name=rule.name,
        slo=Slo(
            ttft_ms=rule.slo.ttft_ms,
            tpot_ms=rule.slo.tpot_ms,
            attainment=rule.slo.attainment,
            strict=rule.slo.strict,
        ),
        kv_headroom_floor=None if floor == "off" else floor,
        penalty_pusd=0 if rule.penalty_usd is None else usd_to_pusd(rule.penalty_usd),
        max_cost_pusd=None if cap is None else usd_to_pusd(cap),
        otherwise=Otherwise(rule.otherwise),
        residency=Residency(rule.residency),
    )
