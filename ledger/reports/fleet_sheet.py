"""The assumption sheet of a ledger and its verdict, read once for all callers of `survey`.

Rates and ops costs are the current ones, whatever past hours were booked at. A model's price
elsewhere is what its requests on own engines would cost at the cheapest API that the model may
reach: the comparison of each request with that API if there is one, else the price paid there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ledger.economics.assumptions import (
    AssumptionSheet,
    AssumptionSource,
    ModelAssumption,
    ModelResidency,
    PoolAssumptions,
)
from ledger.economics.cost import HOURS_OF_A_MONTH, SECONDS_PER_HOUR, Exact
from ledger.economics.fleet_verdict import FleetVerdict, judge
from ledger.economics.reserved_capacity import ReservedOffer
from ledger.economics.value_curve import TrafficClass, ValueCurve
from ledger.fleet.bills import PoolBill
from ledger.fleet.capability import CapabilitySource, PoolCapability
from ledger.fleet.model_routes import ModelRoute, RouteApi
from ledger.fleet.pool_records import ContractVersion
from ledger.queries.load import PoolLoads
from ledger.reports.facts import SpanFacts
from ledger.reports.pool_demand import (
    KEPT_INSIDE,
    ClassKey,
    KeptMix,
    PoolMix,
    PoolSize,
    build_curve,
    class_keys,
    class_name,
    pool_traffic,
)
from ledger.sums.rollup import ANSWERED

_SOURCES = {
    CapabilitySource.MEASURED: (AssumptionSource.MEASURED, "step times at this mix"),
    CapabilitySource.SERVED: (AssumptionSource.MEASURED, "served for whole hours"),
    CapabilitySource.SPILLS: (AssumptionSource.MEASURED, "what spilled for lack of room"),
    CapabilitySource.FLOOR: (AssumptionSource.ASSUMED, "the busiest minutes served, at least"),
}


@dataclass(frozen=True, slots=True)
class SheetReads:
    """Inputs of an assumption sheet, from one state of the ledger and for all teams."""

    facts: SpanFacts
    loads: PoolLoads
    homes: Mapping[str, str]
    mix: KeptMix
    reserved: tuple[ReservedOffer, ...] = ()
    refused: Mapping[str, int] = field(default_factory=dict)  # requests by model, never attempted
    ops_sources: Mapping[str, str] = field(default_factory=dict)  # by pool, where it is entered


@dataclass(frozen=True, slots=True)
class PoolReads:
    """One pool's bill, contract, capacity, and the request kinds that define its capacity."""

    bill: PoolBill
    contract: ContractVersion
    capability: PoolCapability | None
    kinds: frozenset[str] | None


def fleet_verdict(
    reads: SheetReads, pools: Iterable[PoolReads], *, month_hours: Exact = HOURS_OF_A_MONTH
) -> FleetVerdict:
    """Return the verdict on every pool whose contract has begun."""
    made = [_pool(reads, pool) for pool in pools]
    pools_of = tuple(assumptions for assumptions, _ in made)
    sheet = AssumptionSheet(pools_of, month_hours, reserved=reads.reserved)
    return judge(sheet, {assumptions.pool: curve for assumptions, curve in made})


def _pool(reads: SheetReads, pool: PoolReads) -> tuple[PoolAssumptions, ValueCurve]:
    bill, contract, able = pool.bill, pool.contract, pool.capability
    spills = [model for model, home in reads.homes.items() if home == bill.pool]
    traffic = pool_traffic(reads.loads, bill.pool, spills, pool.kinds)
    mix = reads.mix.of(bill.pool, pool.kinds)
    keys = class_keys(mix, traffic)
    models = [_model(reads, pool, key) for key in keys]
    each = None if able is None else able.per_minute / max(1, contract.replicas)
    window = 1 if able is None else able.window_minutes
    curve = build_curve(
        traffic,
        mix,
        _classes(keys, models, mix),
        size=PoolSize(contract.replicas, each, window),
        bought_pusd=_paid(reads.facts, spills, pool.kinds),
    )
    source, origin = (AssumptionSource.UNKNOWN, None) if able is None else _SOURCES[able.known]
    shared = contract.machine is not None
    answers, failures = _attempts(reads.facts, bill.pool, spills)
    failures += sum(
        count
        for model, count in reads.refused.items()
        if reads.homes.get(model, bill.pool) == bill.pool
    )
    entered = contract.ops_pusd_per_hour or contract.ops_seconds_per_week
    return (
        PoolAssumptions(
            pool=bill.pool,
            engines=contract.replicas,
            hours=bill.hours,
            pusd_per_hour=_rate(contract, shared=shared),
            ops_pusd_per_week=_ops_per_week(contract) if entered else None,
            count_each=1 if shared else contract.gpus // max(1, contract.replicas),
            noun=_noun(contract, shared=shared),
            rate_origin=contract.source,
            rate_since=None if contract.since is None else contract.since.isoformat(),
            ops_origin=reads.ops_sources.get(bill.pool),
            capacity_per_minute=None if each is None else each.limit_denominator(100),
            capacity_source=source,
            capacity_origin=origin,
            window_minutes=window,
            models=tuple(models),
            answers=answers,
            failures=failures,
            billed_share=bill.billed_share,
        ),
        curve,
    )


def _attempts(facts: SpanFacts, pool: str, spills: Sequence[str]) -> tuple[int, int]:
    """Return how many attempts of a pool and its overflow were answered, and how many failed."""
    answers = failures = 0
    for group in facts.attempts:
        if group.status is None or (group.pool != pool and group.model not in spills):
            continue
        if group.status in ANSWERED:
            answers += group.attempts
        else:
            failures += group.attempts
    return answers, failures


def _rate(contract: ContractVersion, *, shared: bool) -> Exact | None:
    """Return the rate per GPU, or per engine on a shared machine."""
    if contract.pusd_per_hour is None or not shared:
        return contract.pusd_per_hour
    return Fraction(contract.pusd_per_hour * contract.gpus, max(1, contract.replicas))


def _noun(contract: ContractVersion, *, shared: bool) -> tuple[str, str]:
    if shared:
        return "engine", "engines"
    return ("machine", "machines") if contract.gpu_type.upper() == "CPU" else ("GPU", "GPUs")


def _ops_per_week(contract: ContractVersion) -> Fraction | None:
    """Return the ops cost per week, `None` if hours are stated without a price per hour."""
    if contract.ops_seconds_per_week and not contract.ops_pusd_per_hour:
        return None
    seconds = contract.ops_seconds_per_week * contract.ops_pusd_per_hour
    return Fraction(seconds, SECONDS_PER_HOUR)


def _classes(
    keys: Sequence[ClassKey], models: Sequence[ModelAssumption], mix: PoolMix
) -> list[tuple[ClassKey, TrafficClass]]:
    goes = {ModelResidency.MAY_LEAVE, ModelResidency.DECLARED_MOVABLE}
    return [
        (key, TrafficClass(_name(model), model.pusd_per_token, model.residency in goes, work))
        for key, model, work in zip(keys, models, mix.work(keys), strict=True)
    ]


def _name(model: ModelAssumption) -> str:
    """Return the verdict's name for a class, with the reason if a price is missing."""
    if model.residency is ModelResidency.NOT_KNOWN:
        return f"{model.model} (no API of it is known)"
    if model.residency is ModelResidency.MAY_LEAVE and model.pusd_per_token is None:
        return f"{model.model} (its price elsewhere is not known)"
    return model.model


def _model(reads: SheetReads, pool: PoolReads, key: ClassKey) -> ModelAssumption:
    """Return the possible targets of a class and their price."""
    name = class_name(key)
    route = reads.mix.routes.get(key.model)
    seen = _seen_at(reads.facts, key.model, pool.kinds)
    if key.is_bound or (route is not None and route.residency == KEPT_INSIDE):
        return ModelAssumption(name, ModelResidency.MAY_NOT_LEAVE, None, None)
    apis = _known_apis(seen) if route is None else _reachable(route)
    if not apis:
        unknown = ModelResidency.NOT_KNOWN
        return ModelAssumption(name, unknown, None, None)
    priced = [
        (price, place)
        for place, api in enumerate(apis)
        if (price := _price(reads.facts, pool, key.model, api, seen)) is not None
    ]
    if not priced:
        return ModelAssumption(name, ModelResidency.MAY_LEAVE, apis[0].target, None)
    price, place = min(priced)
    api = apis[place]
    judged = api.is_same_weights or api.quality_loss_ppm is not None
    return ModelAssumption(
        name, ModelResidency.MAY_LEAVE, api.target, price, None if judged else api.price
    )


def _reachable(route: ModelRoute) -> tuple[RouteApi, ...]:
    return route.apis if route.residency == "any" else ()


@dataclass(frozen=True, slots=True)
class _ApiUse:
    tokens: int
    pusd: int


def _seen_at(facts: SpanFacts, model: str, kinds: frozenset[str] | None) -> Mapping[str, _ApiUse]:
    """Return the tokens that APIs answered for a model in the period and their cost by target."""
    found: dict[str, _ApiUse] = {}
    for group in facts.attempts:
        if group.model != model or group.backend != "api" or group.status not in ANSWERED:
            continue
        if group.flag == "unpriced" or (kinds is not None and group.kind not in kinds):
            continue
        before = found.get(group.target, _ApiUse(0, 0))
        tokens = group.input_tokens + group.output_tokens
        found[group.target] = _ApiUse(before.tokens + tokens, before.pusd + group.cost_pusd)
    return found


def _known_apis(seen: Mapping[str, _ApiUse]) -> tuple[RouteApi, ...]:
    """Return the APIs that served a model without a declared route."""
    return tuple(RouteApi(target, target) for target in sorted(seen))


def _price(
    facts: SpanFacts,
    pool: PoolReads,
    model: str,
    api: RouteApi,
    seen: Mapping[str, _ApiUse],
) -> Fraction | None:
    """Return the price per token of a model's kept requests: as compared, else as paid."""
    tokens = pusd = 0
    for group in facts.compared:
        if group.model != model or group.comparator != api.price:
            continue
        if group.backend != "own" or group.pool != pool.bill.pool or group.status not in ANSWERED:
            continue
        if pool.kinds is None or group.kind in pool.kinds:
            tokens += group.tokens
            pusd += group.cost_pusd
    if tokens:
        return Fraction(pusd, tokens)
    bought = seen.get(api.target)
    return Fraction(bought.pusd, bought.tokens) if bought is not None and bought.tokens else None


def _paid(facts: SpanFacts, spills: Sequence[str], kinds: frozenset[str] | None) -> dict[str, int]:
    """Return what was paid for requests that own engines lacked capacity for, by model."""
    costs = facts.overflowed(spills=spills, kinds=kinds)
    return {cost.model: cost.pusd for cost in costs if cost.comparator is None}
