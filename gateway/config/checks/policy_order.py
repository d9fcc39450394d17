"""Check for policies that no request reaches, because earlier ones match all of theirs.

The first match wins. An unreachable rule is a warning. It is an error if the rule restricts what
the rules above leave open, such as `residency: internal_only`: prompts would leave the network
although the file says otherwise.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gateway.config.aliases import logical_models, resolve_model
from gateway.config.checks.hours_of_week import covers_hours
from gateway.config.faults import ConfigFault, Place
from gateway.config.rule_fields import RESTRICTIONS, RuleRestriction
from gateway.config.schema import MatchSection, PolicyRuleSection, Settings
from gateway.config.schema_policies import TimesSection
from router.policy import MatchInput, RoutingRule, is_covering, is_match
from router.types import Policy

_NOBODY = Policy("")


@dataclass(frozen=True, slots=True, eq=False)
class OrderedRule:
    """Policy with its position in the file and its match of model and team."""

    index: int
    source: PolicyRuleSection
    asks: RoutingRule


# By model (`None`: all): the rules that act in place of another.
CoveringRules = Mapping[str | None, tuple[OrderedRule, ...]]


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
    settings: Settings, rule: OrderedRule, covering: CoveringRules
) -> ConfigFault:
    uppers = list(dict.fromkeys(upper for rules in covering.values() for upper in rules))
    names = " and ".join(f"`{upper.source.name}`" for upper in uppers)
    is_all = len(uppers) == 1 and not (uppers[0].asks.models or uppers[0].asks.teams)
    what = "every request" if is_all else "all requests that this one matches"
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
) -> CoveringRules:
    """Return by model the rules that act in place of this one; empty while it can act.

    `None` stands for all of its models. Several rules above may cover it together, each for some
    models, teams or hours.
    """
    over = [upper for upper in above if _is_condition_covered(upper.source, rule.source)]
    if not over:
        return {}
    if whole := _first_covering(over, rule, rule.asks):
        return {None: whole}
    found: dict[str | None, tuple[OrderedRule, ...]] = {}
    for model in _models(settings, rule.source):
        for team in rule.asks.teams or (None,):
            part = RoutingRule(
                "", _NOBODY, (model,), () if team is None else (team,), shadow=rule.asks.shadow
            )
            first = _first_covering(over, rule, part)
            if not first:
                return {}
            if _lost_settings(settings, rule, {model: first}):
                found[model] = first
            else:
                found.setdefault(model, first)
    return found


def _first_covering(
    over: Sequence[OrderedRule], rule: OrderedRule, part: RoutingRule
) -> tuple[OrderedRule, ...]:
    """Return the first rule above that covers a part of the rule at all of its hours.

    If no single rule does, return the rules that do together; empty if hours stay uncovered.
    """
    uppers = [upper for upper in over if is_covering(upper.asks, part)]
    for upper in uppers:
        if covers_hours(upper.source.match.times or (TimesSection(),), rule.source.match.times):
            return (upper,)
    hours = [times for upper in uppers for times in upper.source.match.times]
    return tuple(uppers) if covers_hours(hours, rule.source.match.times) else ()


def _models(settings: Settings, rule: PolicyRuleSection) -> list[str]:
    """Return the logical models and open patterns that the rule can apply to."""
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
    """Return whether the upper rule's condition holds whenever the lower one's does."""
    if upper.shadow and not lower.shadow:
        return False
    says = _condition(upper.match)
    return says is None or says == _condition(lower.match)


def _condition(asked: MatchSection) -> str | None:
    text = None if asked.when is None else "".join(asked.when.split())
    return None if text == "true" else text


def _match_of(rule: PolicyRuleSection) -> RoutingRule:
    """Return the match of model and team; `_first_covering` compares conditions and hours."""
    return RoutingRule("", _NOBODY, rule.match.models, rule.match.teams, shadow=rule.shadow)


def _lost_settings(settings: Settings, rule: OrderedRule, covering: CoveringRules) -> list[str]:
    """Return the settings by which this rule is stricter than a rule that acts in its place."""
    if rule.source.shadow:
        return []
    return [
        restriction.setting
        for restriction in RESTRICTIONS
        if not all(
            restriction.is_kept(upper.source, rule.source)
            or _is_kept_by_models(settings, restriction, rule.source, model)
            for model, uppers in covering.items()
            for upper in uppers
        )
    ]


def _is_kept_by_models(
    settings: Settings, restriction: RuleRestriction, rule: PolicyRuleSection, model: str | None
) -> bool:
    """Return whether the models themselves restrict requests as the rule does."""
    is_kept = restriction.is_kept_by_model
    if is_kept is None:
        return False
    names = _models(settings, rule) if model is None else [model]
    found = [resolve_model(settings, name) for name in names]
    return bool(found) and all(resolved is not None and is_kept(resolved[1]) for resolved in found)
