"""What a configuration declares to the books: GPU contracts and budgets, in the books' words."""

from backends.engines import ENGINE_KINDS
from gateway.config.machines import machine_shares
from gateway.config.settings import Settings
from ledger.declared import BudgetSpec, DeclaredContract
from ledger.money import usd_to_pusd


def contracts(settings: Settings) -> list[DeclaredContract]:
    paid = machine_shares(settings)
    return [
        DeclaredContract(
            pool=name,
            gpu_type=pool.gpu.type,
            gpus_per_replica=pool.gpu.count,
            replicas=pool.engine.replicas + len(pool.engine.endpoints),
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
