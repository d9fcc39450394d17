"""Declarations of a configuration for the ledger: GPU contracts, budgets, model routes."""

from backends.engines import ENGINE_KINDS
from gateway.config.aliases import logical_models, resolve_model
from gateway.config.machines import machine_shares
from gateway.config.pool_seats import seat_count
from gateway.config.schema import ModelSection
from gateway.config.schema_policies import PolicyRuleSection
from gateway.config.settings import Settings
from ledger.budgets.entered import BudgetSpec
from ledger.declared import DeclaredContract
from ledger.fleet.model_routes import ModelRoute, RouteApi
from ledger.money import PPM, usd_to_pusd

KEPT_INSIDE, DEPENDS = "internal_only", "depends"


def contracts(settings: Settings) -> list[DeclaredContract]:
    paid = machine_shares(settings)
    return [
        DeclaredContract(
            pool=name,
            gpu_type=pool.gpu.type,
            gpus_per_replica=pool.gpu.count,
            replicas=seat_count(pool),
            billing=pool.gpu.billing,
            pusd_per_hour=paid[name].pusd_per_hour,
            source=pool.gpu.source,
            since=pool.gpu.since,
            until=pool.gpu.until,
            ops_seconds_per_week=round(pool.ops.hours_per_week * 3600),
            ops_pusd_per_hour=usd_to_pusd(pool.ops.usd_per_hour),
            simulated=ENGINE_KINDS[pool.engine.kind].simulated,
            machine=paid[name].machine,
            share_ppm=paid[name].share_ppm,
        )
        for name, pool in settings.pools.items()
    ]


def budgets(settings: Settings) -> list[BudgetSpec]:
    return [
        BudgetSpec(
            scope=budget.scope,
            period=budget.period,
            limit_pusd=usd_to_pusd(budget.usd),
            hard=budget.hard,
            timezone=budget.timezone,
        )
        for budget in settings.budgets
    ]


def routes(settings: Settings) -> list[ModelRoute]:
    """Return the further targets of each model that own engines serve."""
    return [
        ModelRoute(name, *_outside(settings, name, model))
        for name, model in logical_models(settings)
        if any(target.startswith("pool:") for target in model.reachable)
    ]


def _outside(
    settings: Settings, name: str, model: ModelSection
) -> tuple[str, tuple[RouteApi, ...]]:
    """Return the residency of a model's requests, and the APIs that they may reach.

    Rules with conditions keep only some requests inside; the residency is then `depends`.
    """
    residency: str = model.residency
    allowed = {*model.overflow}
    for rule in settings.policies:
        if not _is_of_model(settings, rule, name):
            continue
        is_whole = not (rule.match.teams or rule.match.when or rule.match.times)
        keeps = rule.residency == KEPT_INSIDE
        if is_whole:
            residency = KEPT_INSIDE if keeps else residency
            allowed &= {*rule.candidates} if rule.candidates else allowed
            break
        if keeps and residency != KEPT_INSIDE:
            return DEPENDS, ()
    apis = [target for target in model.overflow if target in allowed]
    return residency, tuple(_api(settings, model, target) for target in apis if _is_api(target))


def _is_of_model(settings: Settings, rule: PolicyRuleSection, name: str) -> bool:
    names = (resolve_model(settings, given) for given in rule.match.models)
    return not rule.match.models or any(
        resolved is not None and resolved[0] == name for resolved in names
    )


def _is_api(target: str) -> bool:
    return not target.startswith("pool:")


def _api(settings: Settings, model: ModelSection, target: str) -> RouteApi:
    provider = settings.providers.get(target.partition("/")[0])
    price = target if provider is None else provider.price_name(target)
    loss = model.quality_loss.get(target)
    return RouteApi(
        target, price, None if loss is None else round(loss * PPM), price in model.compare_with[1:]
    )
