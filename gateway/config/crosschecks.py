"""Checks across the parts of a configuration: unknown names and contradictions.

Each check is a pure function from settings to faults. `CHECKS` lists those that every start
enforces; `gateway.config.config_facts` has those that need facts from outside the file.
"""

from collections.abc import Callable, Iterable, Iterator

from gateway.config.aliases import logical_models, resolve_model
from gateway.config.checks.idle_sections import check_idle_sections
from gateway.config.checks.provider_names import wire_of_provider
from gateway.config.checks.roles import check_roles
from gateway.config.crosschecks_adapters import check_adapters
from gateway.config.crosschecks_budgets import BUDGET_CHECKS
from gateway.config.crosschecks_cache import check_response_cache
from gateway.config.crosschecks_content import CONTENT_CHECKS
from gateway.config.crosschecks_hosts import HOST_CHECKS
from gateway.config.crosschecks_policies import POLICY_CHECKS
from gateway.config.crosschecks_reports import check_reports
from gateway.config.crosschecks_retirement import check_retirements
from gateway.config.crosschecks_sampling import check_sampling
from gateway.config.crosschecks_scale import check_scale
from gateway.config.crosschecks_upkeep import check_upkeep
from gateway.config.faults import ConfigFault, Place, suggest
from gateway.config.machines import check_machines
from gateway.config.schema import ModelSection, Settings
from gateway.config.sections import MANAGED_MEMBERS

Check = Callable[[Settings], Iterator[ConfigFault]]


def check_pass_through(settings: Settings) -> Iterator[ConfigFault]:
    for name, model in settings.models.items():
        if not isinstance(model, ModelSection):
            provider, slash, rest = name.partition("/")
            if not slash or rest != "*":
                words = "a pass-through model is named after its provider: `openai/*`"
                yield ConfigFault(("models", name), words)
            elif provider not in settings.providers:
                yield _no_provider(settings, ("models", name), provider)


def check_aliases(settings: Settings) -> Iterator[ConfigFault]:
    for name, model in settings.models.items():
        if not isinstance(model, ModelSection) or model.same_as is None:
            continue
        here = ("models", name, "same_as")
        if model.targets or model.then:
            yield ConfigFault(here, "an alias has no targets of its own: leave out one of the two")
        other = model.same_as
        if resolve_model(settings, name) is not None:
            continue
        if not isinstance(settings.models.get(other), ModelSection):
            hint = suggest(other, set(settings.models) - {name})
            yield ConfigFault(here, f"`{other}` leads to no model{hint}", about=("models", other))
        elif _circles(settings, name):
            yield ConfigFault(here, f"`{other}` leads to no model, but back to `{name}`")


def check_targets(settings: Settings) -> Iterator[ConfigFault]:
    for name, model in logical_models(settings):
        here: Place = ("models", name, "targets")
        if not model.targets:
            yield ConfigFault(here, "at least one is needed: `pool:NAME` or `PROVIDER/MODEL`")
        for inside, target in model.placed_targets():
            place = ("models", name, *inside)
            pool = target.removeprefix("pool:")
            provider, slash, upstream = target.partition("/")
            if (words := _repeated(model, inside, target)) is not None:
                yield ConfigFault(place, words)
            elif pool != target:
                if pool not in settings.pools:
                    words = f"no pool named `{pool}`{suggest(pool, settings.pools)}"
                    yield ConfigFault(place, words, about=("pools", pool))
            elif not slash or not provider or not upstream:
                meant = f"; did you mean `pool:{target}`?" if target in settings.pools else ""
                words = f"`{target}` is not a `pool:NAME` or `PROVIDER/MODEL`{meant}"
                yield ConfigFault(place, words)
            elif provider not in settings.providers:
                yield _no_provider(settings, place, provider)


def check_stages(settings: Settings) -> Iterator[ConfigFault]:
    """Yield stages without targets, and stages with settings that belong to the model."""
    for name, model in logical_models(settings):
        for number, stage in enumerate(model.then):
            here: Place = ("models", name, "then", number)
            if not stage.targets:
                words = "at least one is needed: `pool:NAME` or `PROVIDER/MODEL`"
                yield ConfigFault((*here, "targets"), words)
            limits = stage.timeouts
            if limits is not None and limits.total_s is not None:
                words = "applies to the whole request: set it in the model's own `timeouts`"
                yield ConfigFault((*here, "timeouts", "total_s"), words)


def check_extra_bodies(settings: Settings) -> Iterator[ConfigFault]:
    """Yield a fault for each extra body member that would change the cost or the identity."""
    stated: list[tuple[Place, Iterable[str]]] = [
        (("pools", name, "engine", "extra_body"), pool.engine.extra_body)
        for name, pool in settings.pools.items()
    ]
    stated += [
        (("providers", name, "extra_body"), provider.extra_body)
        for name, provider in settings.providers.items()
    ]
    for place, members in stated:
        for member in sorted(MANAGED_MEMBERS.intersection(members)):
            cure = "; write `tier`" if member == "service_tier" else ""
            words = f"`{member}` is set by the gateway, or changes the cost of a request{cure}"
            yield ConfigFault((*place, member), words)


def check_tiers(settings: Settings) -> Iterator[ConfigFault]:
    for name, provider in settings.providers.items():
        if provider.tier is not None and wire_of_provider(name, provider).speaks_messages:
            words = "Anthropic's Messages have no service tier: leave `tier` out"
            yield ConfigFault(("providers", name, "tier"), words)


def check_comparators(settings: Settings) -> Iterator[ConfigFault]:
    for name, model in logical_models(settings):
        here: Place = ("models", name, "compare_with")
        if not model.compare_with and any(target.startswith("pool:") for target in model.reachable):
            yield ConfigFault(here, "name at least one API model, or break-even cannot be computed")


def check_confinement(settings: Settings) -> Iterator[ConfigFault]:
    for name, model in logical_models(settings):
        outside = [target for target in model.reachable if not target.startswith("pool:")]
        if model.residency == "internal_only" and outside:
            words = f"internal_only, but the target `{outside[0]}` is an external API"
            yield ConfigFault(("models", name, "residency"), words)


def _repeated(model: ModelSection, place: Place, target: str) -> str | None:
    """Return a fault if a stage names a target that was certainly tried before it."""
    *_, index = place
    stage = model.targets if place[0] == "targets" else model.then[int(place[1])].targets
    if target in stage[: int(index)]:
        return f"`{target}` is stated twice"
    if place[0] == "then" and target in model.targets:
        return f"`{target}` is already one of `targets`, which are asked first: leave it out here"
    return None


def _circles(settings: Settings, name: str) -> bool:
    """Return whether an alias leads to itself."""
    at: str | None = name
    for _ in settings.models:
        model = settings.models.get(at or "")
        at = model.same_as if isinstance(model, ModelSection) else None
        if at == name:
            return True
    return False


def _no_provider(settings: Settings, place: Place, name: str) -> ConfigFault:
    words = f"no provider named `{name}`{suggest(name, settings.providers)}"
    return ConfigFault(place, words, about=("providers", name))


CHECKS: tuple[Check, ...] = (
    check_pass_through,
    check_aliases,
    check_targets,
    check_stages,
    check_extra_bodies,
    check_tiers,
    check_comparators,
    check_confinement,
    check_retirements,
    *POLICY_CHECKS,
    *CONTENT_CHECKS,
    *BUDGET_CHECKS,
    *HOST_CHECKS,
    check_adapters,
    check_idle_sections,
    check_machines,
    check_roles,
    check_reports,
    check_sampling,
    check_upkeep,
    check_response_cache,
    check_scale,
)
