"""Checks of policies against each other, the models and the clock; compiles conditions."""

from collections.abc import Callable, Iterator

from gateway.config.aliases import logical_models, resolve_model
from gateway.config.checks.policy_order import check_policy_order
from gateway.config.conditions import Condition, ConditionError
from gateway.config.faults import ConfigFault, Place, suggest, warning
from gateway.config.rule_fields import object_to_target
from gateway.config.schema import MatchSection, ModelSection, PolicyRuleSection, Settings
from ledger.budgets.windows import WindowError, zone_stated
from router.policy import MatchInput, RoutingRule, is_match
from router.types import Policy

UNMATCHED = "default"  # policy name of requests that match no rule


def check_policy_names(settings: Settings) -> Iterator[ConfigFault]:
    names = [rule.name for rule in settings.policies]
    for index, name in enumerate(names):
        if name in names[:index]:
            words = f"policy names must be unique: `{name}` is taken"
            yield ConfigFault(("policies", index, "name"), words)


def check_policy_default(settings: Settings) -> Iterator[ConfigFault]:
    for index, rule in enumerate(settings.policies):
        if rule.name == UNMATCHED and (rule.match != MatchSection() or rule.shadow):
            words = f"`{UNMATCHED}` marks requests that no policy matches: choose another name"
            upon: tuple[Place, ...] = (("policies", index, "match"), ("policies", index, "shadow"))
            yield warning(("policies", index, "name"), words, upon=upon)


def check_policy_models(settings: Settings) -> Iterator[ConfigFault]:
    known = [name for name, _ in logical_models(settings)]
    for index, rule in enumerate(settings.policies):
        for at, name in enumerate(rule.match.models):
            place = ("policies", index, "match", "models", at)
            found = resolve_model(settings, name)
            if found is not None and found[0] != name:
                yield ConfigFault(
                    place, f"`{name}` is an alias: name `{found[0]}`, which serves it"
                )
            elif isinstance(settings.models.get(name), ModelSection):
                continue  # invalid aliases have their own fault
            elif found is None and not _pattern_matches(settings, name, known):
                yield ConfigFault(
                    place, f"no model named `{name}`{suggest(name, known)}", about=("models", name)
                )


def check_policy_queue(settings: Settings) -> Iterator[ConfigFault]:
    for index, rule in enumerate(settings.policies):
        if "queue_ms" in rule.model_fields_set and rule.otherwise != "queue":
            words = (
                f"has no effect, because `otherwise` is `{rule.otherwise}`: set `otherwise: queue`"
            )
            upon: tuple[Place, ...] = (("policies", index, "otherwise"),)
            yield warning(("policies", index, "queue_ms"), words, upon=upon)


def _pattern_matches(settings: Settings, pattern: str, known: list[str]) -> bool:
    """Return whether a pattern such as `openai/*` matches a model that can be requested."""
    if not pattern.endswith("*"):
        return False
    rule = RoutingRule("", Policy(""), models=(pattern,))
    provider = pattern.partition("/")[0]
    passed = settings.models.get(f"{provider}/*") == "passthrough"
    return passed or any(
        is_match(rule, MatchInput(name, "")) for name in (*known, *settings.models)
    )


def check_policy_conditions(settings: Settings) -> Iterator[ConfigFault]:
    for index, rule in enumerate(settings.policies):
        text, place = rule.match.when, ("policies", index, "match", "when")
        if text is None:
            continue
        try:
            condition = Condition(text)
        except ConditionError as error:
            yield ConfigFault(place, f"the condition {error}")
            continue
        for doubt in condition.doubts:
            yield warning(place, doubt)
        if condition.may_fail:
            words = (
                "cannot be told of keys without that tag: say `has(tags.NAME) && ...`; until then "
                "the rule is passed over for them, and its `internal_only` and its cap hold"
            )
            yield warning(place, words)


def check_policy_times(settings: Settings) -> Iterator[ConfigFault]:
    for index, rule in enumerate(settings.policies):
        for at, times in enumerate(rule.match.times):
            place: Place = ("policies", index, "match", "times", at)
            try:
                zone_stated(times.timezone)
            except WindowError as error:
                yield ConfigFault((*place, "timezone"), str(error))
            if times.starts == times.ends:
                words = f"`{times.starts}` to `{times.ends}` is not a time: omit both for all day"
                yield ConfigFault((*place, "ends"), words)


def check_policy_targets(settings: Settings) -> Iterator[ConfigFault]:
    """Yield targets that no model of the rule has, and external ones of internal rules."""
    for index, rule in enumerate(settings.policies):
        models = tuple(_models_of(settings, rule))
        known = {target for _, model in models for target in model.reachable}
        passing = any(name.endswith("*") for name in rule.match.models) or not rule.match.models
        for place, target in _named_targets(rule):
            here: Place = ("policies", index, *place)
            if target not in known and not (passing and _passed_through(settings, target)):
                words = (
                    f"`{target}` is not a target of this policy's models{suggest(target, known)}"
                )
                yield ConfigFault(here, words)
            elif (objection := object_to_target(rule, target)) is not None:
                yield ConfigFault(here, objection)
        if rule.canary is not None and rule.canary.target in rule.weights:
            words = "the canary has its percent: leave it out of the weights"
            yield ConfigFault(("policies", index, "weights", rule.canary.target), words)


def check_policy_quality(settings: Settings) -> Iterator[ConfigFault]:
    for index, rule in enumerate(settings.policies):
        if rule.max_quality_loss is None:
            continue
        place = ("policies", index, "max_quality_loss")
        for name, model in _models_of(settings, rule):
            unstated = [target for target in model.reachable if target not in model.quality_loss]
            if unstated:
                words = f"`{unstated[0]}` of `{name}` is left out: it states no `quality_loss`"
                upon = tuple(("models", name, key) for key in ("targets", "quality_loss"))
                yield warning(place, words, upon=(*upon, ("policies", index, "match")))


def check_model_quality(settings: Settings) -> Iterator[ConfigFault]:
    for name, model in logical_models(settings):
        for target in model.quality_loss:
            if target not in model.reachable:
                words = (
                    f"`{target}` is not a target of this model{suggest(target, model.reachable)}"
                )
                yield ConfigFault(("models", name, "quality_loss", target), words)


def _passed_through(settings: Settings, target: str) -> bool:
    """Return whether models of the target's provider can be requested by their own names."""
    provider, slash, _ = target.partition("/")
    return bool(slash) and settings.models.get(f"{provider}/*") == "passthrough"


def _models_of(settings: Settings, rule: PolicyRuleSection) -> Iterator[tuple[str, ModelSection]]:
    narrowed = RoutingRule("", Policy(""), models=rule.match.models)
    for name, model in logical_models(settings):
        if is_match(narrowed, MatchInput(name, "")):
            yield name, model


def _named_targets(rule: PolicyRuleSection) -> Iterator[tuple[Place, str]]:
    for at, target in enumerate(rule.candidates):
        yield ("candidates", at), target
    for target in rule.weights:
        yield ("weights", target), target
    if rule.canary is not None:
        yield ("canary", "target"), rule.canary.target


POLICY_CHECKS: tuple[Callable[[Settings], Iterator[ConfigFault]], ...] = (
    check_policy_names,
    check_policy_default,
    check_policy_models,
    check_policy_order,
    check_policy_queue,
    check_policy_conditions,
    check_policy_times,
    check_policy_targets,
    check_policy_quality,
    check_model_quality,
)
