"""Policies that no request reaches, because others above them match all that they match.

The first match wins. A rule that is never reached is a warning; it is an error where the rule
restricts something that the rules above it leave open, such as `residency: internal_only`: the
author believes that prompts stay inside, and they do not.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from gateway.config.aliases import logical_models, resolve_model
from gateway.config.faults import ConfigFault, Place
from gateway.config.schema import MatchSection, PolicyRuleSection, Settings
from gateway.config.schema_policies import TimesSection
from router.policy import MatchInput, RoutingRule, is_covering, is_match
from router.types import Policy

Limit = TypeVar("Limit", float, Decimal)

_NOBODY = Policy("")


@dataclass(frozen=True, slots=True, eq=False)
class OrderedRule:
    """A policy with its place in the file and what it asks of model and team."""

    index: int
    source: PolicyRuleSection
    asks: RoutingRule


def check_policy_order(settings: Settings) -> Iterator[ConfigFault]:
    above: list[OrderedRule] = []
    for index, source in enumerate(settings.policies):
        rule = OrderedRule(index, source, _match_of(source))
        covering = _covering_rules(settings, above, rule)
        if not covering:
            above.append(rule)
            continue
        yield _never_used_fault(settings, rule, covering)


def _never_used_fault(
    settings: Settings, rule: OrderedRule, covering: Mapping[str | None, OrderedRule]
) -> ConfigFault:
    uppers = list(dict.fromkeys(covering.values()))
    names = " and ".join(f"`{upper.source.name}`" for upper in uppers)
    is_all = len(uppers) == 1 and not (uppers[0].asks.models or uppers[0].asks.teams)
    what = "every request" if is_all else "all that this one does"
    words = f"never used: {names} above it {'matches' if len(uppers) == 1 else 'match'} {what}"
    upon: tuple[Place, ...] = tuple(("policies", rule.index, key) for key in ("match", "shadow"))
    upon += tuple(("policies", upper.index) for upper in uppers)
    if None not in covering:
        upon += (("models",),)
    lost = _lost_settings(settings, rule, covering)
    if not lost:
        return ConfigFault(("policies", rule.index), words, "warning", upon=upon)
    restrictions = " and ".join(f"`{name}`" for name in lost)
    words += f", so its {restrictions} never {'act' if len(lost) > 1 else 'acts'}: move it above "
    fields = [name.partition(".")[0] for name in lost]
    upon += tuple(("policies", rule.index, name) for name in fields)
    return ConfigFault(("policies", rule.index), words + f"`{uppers[0].source.name}`", upon=upon)


def _covering_rules(
    settings: Settings, above: Sequence[OrderedRule], rule: OrderedRule
) -> dict[str | None, OrderedRule]:
    """Return by model the rules that act in place of this one; empty while it can act.

    `None` stands for all of its models. The rules above may cover it together, each of them some
    of its models and teams.
    """
    over = [upper for upper in above if _is_condition_covered(upper.source, rule.source)]
    if not over:
        return {}
    for upper in over:
        if is_covering(upper.asks, rule.asks):
            return {None: upper}
    found: dict[str | None, OrderedRule] = {}
    for model in _models(settings, rule.source):
        for team in rule.asks.teams or (None,):
            part = RoutingRule(
                "", _NOBODY, (model,), () if team is None else (team,), shadow=rule.asks.shadow
            )
            first = next((upper for upper in over if is_covering(upper.asks, part)), None)
            if first is None:
                return {}
            if _lost_settings(settings, rule, {model: first}):
                found[model] = first
            else:
                found.setdefault(model, first)
    return found


def _models(settings: Settings, rule: PolicyRuleSection) -> list[str]:
    """Return the logical models and the open patterns that the rule can be asked about."""
    known = [name for name, _ in logical_models(settings)]
    if not rule.match.models:
        passed = [name for name, model in settings.models.items() if model == "passthrough"]
        return [*known, *passed]
    found: list[str] = []
    for name in rule.match.models:
        pattern = RoutingRule("", _NOBODY, (name,))
        named = [each for each in known if is_match(pattern, MatchInput(each, ""))]
        provider = name.partition("/")[0]
        is_open = settings.models.get(f"{provider}/*") == "passthrough" or name == "*"
        found += [name] if is_open or not named else named
    return found


def _is_condition_covered(upper: PolicyRuleSection, lower: PolicyRuleSection) -> bool:
    """Whether conditions and hours of the upper rule hold wherever those of the lower do."""
    asked, below = upper.match, lower.match
    if upper.shadow and not lower.shadow:
        return False
    says = _condition(asked)
    if says is not None and says != _condition(below):
        return False
    if not asked.times or any(_is_always(times) for times in asked.times):
        return True
    return bool(below.times) and all(times in asked.times for times in below.times)


def _condition(asked: MatchSection) -> str | None:
    text = None if asked.when is None else "".join(asked.when.split())
    return None if text == "true" else text


def _is_always(times: TimesSection) -> bool:
    whole_day = (times.starts, times.ends) == ("00:00", "24:00")
    return whole_day and len(set(times.days)) in (0, 7)


def _match_of(rule: PolicyRuleSection) -> RoutingRule:
    """Model and team; conditions and hours are compared by `_is_condition_covered`."""
    return RoutingRule("", _NOBODY, rule.match.models, rule.match.teams, shadow=rule.shadow)


def _lost_settings(
    settings: Settings, rule: OrderedRule, covering: Mapping[str | None, OrderedRule]
) -> list[str]:
    """Return the settings by which this rule is stricter than a rule that acts in its place."""
    if rule.source.shadow:
        return []
    return [
        name
        for name, keeps in RESTRICTIONS.items()
        if not all(
            keeps(upper.source, rule.source)
            or (name == "residency" and _stays_inside(settings, rule.source, model))
            for model, upper in covering.items()
        )
    ]


def _stays_inside(settings: Settings, rule: PolicyRuleSection, model: str | None) -> bool:
    """Whether the models themselves are internal-only, whatever a policy says."""
    names = _models(settings, rule) if model is None else [model]
    found = [resolve_model(settings, name) for name in names]
    return bool(found) and all(
        each is not None and each[1].residency == "internal_only" for each in found
    )


def _is_residency_preserved(upper: PolicyRuleSection, lower: PolicyRuleSection) -> bool:
    return lower.residency == "any" or upper.residency == "internal_only" or _is_own(upper)


def _is_candidates_preserved(upper: PolicyRuleSection, lower: PolicyRuleSection) -> bool:
    if not lower.candidates:
        return True
    if _is_own(lower) and upper.residency == "internal_only":
        return True
    return bool(upper.candidates) and set(upper.candidates) <= set(lower.candidates)


def _is_own(rule: PolicyRuleSection) -> bool:
    return bool(rule.candidates) and all(name.startswith("pool:") for name in rule.candidates)


def _is_cap_preserved(upper: PolicyRuleSection, lower: PolicyRuleSection) -> bool:
    return _no_looser(upper.max_usd_per_request, lower.max_usd_per_request)


def _is_quality_preserved(upper: PolicyRuleSection, lower: PolicyRuleSection) -> bool:
    return _no_looser(upper.max_quality_loss, lower.max_quality_loss)


def _is_slo_preserved(upper: PolicyRuleSection, lower: PolicyRuleSection) -> bool:
    """Only a strict promise leaves targets out; one that no time is stated for is none."""
    ours, theirs = lower.slo, upper.slo
    if not ours.strict or (ours.ttft_ms is None and ours.tpot_ms is None):
        return True
    return (
        theirs.strict
        and _no_looser(theirs.ttft_ms, ours.ttft_ms)
        and _no_looser(theirs.tpot_ms, ours.tpot_ms)
        and theirs.attainment >= ours.attainment
    )


def _no_looser(upper: Limit | None, lower: Limit | None) -> bool:
    return lower is None or (upper is not None and upper <= lower)


# What a policy can only tighten: a request that no longer falls under it loses that protection.
RESTRICTIONS: Mapping[str, Callable[[PolicyRuleSection, PolicyRuleSection], bool]] = {
    "residency": _is_residency_preserved,
    "candidates": _is_candidates_preserved,
    "max_usd_per_request": _is_cap_preserved,
    "max_quality_loss": _is_quality_preserved,
    "slo.strict": _is_slo_preserved,
}
