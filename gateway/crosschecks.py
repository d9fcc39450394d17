"""What the parts of a configuration say about each other: names that lead nowhere, contradictions.

Each check is a small function from settings to faults; it reads no file and no clock. `CHECKS` is
what no process could work with and what every start refuses; `gateway.plausible` holds what needs
facts from outside the file.
"""

from collections.abc import Callable, Iterator

from gateway.aliases import resolve_model
from gateway.crosschecks_budgets import BUDGET_CHECKS
from gateway.crosschecks_hosts import HOST_CHECKS
from gateway.faults import Fault, Place, nearest, warning
from gateway.machines import machines
from gateway.schema import Model, PolicyRule, Settings
from router.policy import Facts, Rule, matches
from router.types import Policy

Check = Callable[[Settings], Iterator[Fault]]


def logical(settings: Settings) -> Iterator[tuple[str, Model]]:
    """The models that are no aliases and no pass-through."""
    for name, model in settings.models.items():
        if isinstance(model, Model) and model.same_as is None:
            yield name, model


def pass_through(settings: Settings) -> Iterator[Fault]:
    for name, model in settings.models.items():
        if not isinstance(model, Model):
            provider, slash, rest = name.partition("/")
            if not slash or rest != "*":
                words = "a pass-through model is named after its provider: `openai/*`"
                yield Fault(("models", name), words)
            elif provider not in settings.providers:
                yield _no_provider(settings, ("models", name), provider)


def aliases(settings: Settings) -> Iterator[Fault]:
    for name, model in settings.models.items():
        if not isinstance(model, Model) or model.same_as is None:
            continue
        here = ("models", name, "same_as")
        if model.targets:
            yield Fault(here, "an alias has no targets of its own: leave out one of the two")
        other = model.same_as
        if resolve_model(settings, name) is not None:
            continue
        if not isinstance(settings.models.get(other), Model):
            hint = nearest(other, set(settings.models) - {name})
            yield Fault(here, f"`{other}` leads to no model{hint}", about=("models", other))
        elif _circles(settings, name):
            yield Fault(here, f"`{other}` leads to no model, but back to `{name}`")


def targets(settings: Settings) -> Iterator[Fault]:
    for name, model in logical(settings):
        here: Place = ("models", name, "targets")
        if not model.targets:
            yield Fault(here, "at least one is needed: `pool:NAME` or `PROVIDER/MODEL`")
        for index, target in enumerate(model.targets):
            place = (*here, index)
            pool = target.removeprefix("pool:")
            provider, slash, upstream = target.partition("/")
            if target in model.targets[:index]:
                yield Fault(place, f"`{target}` is stated twice")
            elif pool != target:
                if pool not in settings.pools:
                    words = f"no pool named `{pool}`{nearest(pool, settings.pools)}"
                    yield Fault(place, words, about=("pools", pool))
            elif not slash or not provider or not upstream:
                meant = f"; did you mean `pool:{target}`?" if target in settings.pools else ""
                yield Fault(place, f"`{target}` is no `pool:NAME` or `PROVIDER/MODEL`{meant}")
            elif provider not in settings.providers:
                yield _no_provider(settings, place, provider)


def comparators(settings: Settings) -> Iterator[Fault]:
    for name, model in logical(settings):
        here: Place = ("models", name, "compare_with")
        if not model.compare_with and any(one.startswith("pool:") for one in model.targets):
            yield Fault(here, "name at least one API model, or break-even cannot be computed")


def confinement(settings: Settings) -> Iterator[Fault]:
    for name, model in logical(settings):
        outside = [one for one in model.targets if not one.startswith("pool:")]
        if model.residency == "internal_only" and outside:
            words = f"internal_only, but the target `{outside[0]}` is an external API"
            yield Fault(("models", name, "residency"), words)


def policy_names(settings: Settings) -> Iterator[Fault]:
    names = [rule.name for rule in settings.policies]
    for index, name in enumerate(names):
        if name in names[:index]:
            words = f"policy names must be unique: `{name}` is taken"
            yield Fault(("policies", index, "name"), words)


def policy_models(settings: Settings) -> Iterator[Fault]:
    known = [name for name, _ in logical(settings)]
    for index, rule in enumerate(settings.policies):
        for at, name in enumerate(rule.match.models):
            place = ("policies", index, "match", "models", at)
            found = resolve_model(settings, name)
            if found is not None and found[0] != name:
                yield Fault(place, f"`{name}` is an alias: name `{found[0]}`, which serves it")
            elif isinstance(settings.models.get(name), Model):
                continue  # an alias that leads nowhere has its own fault
            elif found is None and not _pattern_matches(settings, name, known):
                yield Fault(
                    place, f"no model named `{name}`{nearest(name, known)}", about=("models", name)
                )


def policy_order(settings: Settings) -> Iterator[Fault]:
    everything: PolicyRule | None = None
    for index, rule in enumerate(settings.policies):
        if everything is not None:
            words = f"never used: `{everything.name}` above it matches every request"
            yield warning(("policies", index), words)
        elif not rule.match.models and not rule.match.teams:
            everything = rule


def _pattern_matches(settings: Settings, pattern: str, known: list[str]) -> bool:
    """Whether `openai/*` or `chat-*` matches a model that is or may be asked for."""
    if not pattern.endswith("*"):
        return False
    rule = Rule("", Policy(""), models=(pattern,))
    provider = pattern.partition("/")[0]
    passed = settings.models.get(f"{provider}/*") == "passthrough"
    return passed or any(matches(rule, Facts(name, "")) for name in (*known, *settings.models))


def _circles(settings: Settings, name: str) -> bool:
    """Whether an alias leads to itself."""
    at: str | None = name
    for _ in settings.models:
        model = settings.models.get(at or "")
        at = model.same_as if isinstance(model, Model) else None
        if at == name:
            return True
    return False


def _no_provider(settings: Settings, place: Place, name: str) -> Fault:
    words = f"no provider named `{name}`{nearest(name, settings.providers)}"
    return Fault(place, words, about=("providers", name))


CHECKS: tuple[Check, ...] = (
    pass_through,
    aliases,
    targets,
    comparators,
    confinement,
    policy_names,
    policy_models,
    policy_order,
    *BUDGET_CHECKS,
    *HOST_CHECKS,
    machines,
)
