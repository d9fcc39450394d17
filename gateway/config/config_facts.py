"""Checks of a configuration against its surroundings: prices, GPUs, directories, the date.

The checks are pure: `gateway.config.surroundings` gathers the facts. `breakeven check` and every
start run them; child processes do not.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from backends.engine.catalog import GPUS, UnknownGpu, find_gpu
from backends.engines import ENGINE_KINDS
from backends.simulator.profiles import PROFILES
from backends.simulator.shapefile import ShapeFileError
from gateway.config.aliases import logical_models
from gateway.config.checks.known_names import Known, check_unknown_names
from gateway.config.checks.missing_extras import check_extras
from gateway.config.checks.private_hosts import check_private_hosts
from gateway.config.checks.provider_names import check_adapter_needs
from gateway.config.checks.unset_variables import check_unset_variables
from gateway.config.crosschecks_scale import AdviceScore, score_fault
from gateway.config.faults import ConfigFault, Place, suggest, warning
from gateway.config.pool_seats import started_count
from gateway.config.schema import Settings
from gateway.config.step_promises import PoolSteps, promise_faults
from ledger.prices.bands import PriceBands
from ledger.prices.book import PriceBook, lists_tier, tier_of
from ledger.prices.drafts import BUNDLED_RANK

SMALLEST = "models: {chat: {targets: [openai/gpt-4o-mini]}}, providers: {openai: {api_key_env: OPENAI_API_KEY}}"  # noqa: E501  (one line to copy)
WITHOUT_GPU = "CPU"
PRICED_BY: tuple[Place, ...] = (("prices",), ("state_dir",), ("ledger",))


@dataclass(frozen=True, slots=True)
class ConfigFacts:
    """Facts that a configuration is checked against; each is empty where it is unknown.

    `wrong_paths`: faults of named files and directories by place. `prices`: None if a price file
    cannot be read. `environ`: None if this process's environment is not checked. `names`: names of
    the ledger's keys by kind. `addresses`: resolved hosts. `steps`: step times of pools' engines.
    `scores`: scored advice on pools that size themselves. `notes`: facts that could not be
    gathered.
    """

    today: date
    at_us: int
    prices: PriceBook | None
    wrong_paths: Mapping[Place, str] = field(default_factory=dict)
    environ: Mapping[str, str] | None = None
    names: Known = field(default_factory=dict)
    addresses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    steps: Mapping[str, PoolSteps] = field(default_factory=dict)
    scores: Mapping[str, AdviceScore] = field(default_factory=dict)


Check = Callable[[Settings, ConfigFacts], Iterator[ConfigFault]]


def check_something_served(settings: Settings, _: ConfigFacts) -> Iterator[ConfigFault]:
    if not settings.models:
        words = "no model is configured, so nothing is served. The smallest configuration: "
        yield ConfigFault(("models",), f"{words}{{{SMALLEST}}}")


def check_used_pools(settings: Settings, _: ConfigFacts) -> Iterator[ConfigFault]:
    used = {target for _, model in logical_models(settings) for target in model.reachable}
    for name in settings.pools:
        if f"pool:{name}" not in used:
            words = (
                f"no model has the target `pool:{name}`: its hours cost money and no model "
                "uses them"
            )
            yield warning(("pools", name), words, upon=(("models",),))


def check_gpu_types(settings: Settings, _: ConfigFacts) -> Iterator[ConfigFault]:
    """Yield GPU types without a public price and without a configured rate."""
    for name, pool in settings.pools.items():
        kind = pool.gpu.type
        if kind.upper() == WITHOUT_GPU or pool.gpu.usd_per_hour is not None:
            continue
        try:
            find_gpu(kind)
        except UnknownGpu:
            near = suggest(kind, [*(gpu.name for gpu in GPUS), WITHOUT_GPU])
            words = f"no GPU named `{kind}` is known: name another, or set its `usd_per_hour`"
            near = near or "; `breakeven engine list` has the names"
            yield ConfigFault(("pools", name, "gpu", "type"), words + near)


def check_simulated_profiles(settings: Settings, _: ConfigFacts) -> Iterator[ConfigFault]:
    for name, pool in settings.pools.items():
        engine = pool.engine
        kind = ENGINE_KINDS[engine.kind]
        if kind.simulated and engine.model:
            try:  # an engine elsewhere may have any model name; it is measured
                if kind.profile(engine.model) is not None or not started_count(pool):
                    continue
            except ShapeFileError as error:
                words = str(error)
            else:
                near = suggest(engine.model, PROFILES)
                words = f"no simulated profile named `{engine.model}`, and no such file{near}"
            yield ConfigFault(("pools", name, "engine", "model"), words)


def check_contracts_in_force(settings: Settings, facts: ConfigFacts) -> Iterator[ConfigFault]:
    for name, pool in settings.pools.items():
        since, until = pool.gpu.since, pool.gpu.until
        if since and until and since > until:
            continue
        if until and until < facts.today:
            words = f"the contract ended on {until}: hours after it cost nothing in the ledger"
            yield warning(("pools", name, "gpu", "until"), words)
        if since and since > facts.today:
            words = f"the contract begins on {since}: hours before it cost nothing in the ledger"
            yield warning(("pools", name, "gpu", "since"), words)


def check_named_paths(_: Settings, facts: ConfigFacts) -> Iterator[ConfigFault]:
    for place, words in facts.wrong_paths.items():
        yield ConfigFault(place, words)


def check_target_prices(settings: Settings, facts: ConfigFacts) -> Iterator[ConfigFault]:
    hard = any(budget.hard for budget in settings.budgets)
    result = "requests there are unpriced" + (
        ", and refused to keys under a hard budget" if hard else " and flagged in the ledger"
    )
    for model, definition in logical_models(settings):
        for inside, target in definition.placed_targets():
            provider = settings.providers.get(target.partition("/")[0])
            if provider is not None and "/" not in (provider.prices_as or ""):
                name = provider.price_name(target)
                yield from _check_priced(facts, ("models", model, *inside), name, result)
    for name, provider in settings.providers.items():
        if provider.prices_as is not None and "/" in provider.prices_as:
            yield from _check_priced(
                facts, ("providers", name, "prices_as"), provider.prices_as, result
            )


def check_batch_prices(settings: Settings, facts: ConfigFacts) -> Iterator[ConfigFault]:
    """Warn of prices without batch rates: lines go there one by one at the standard price."""
    for model, definition in logical_models(settings):
        for inside, target in definition.placed_targets():
            name = target.partition("/")[0]
            provider = settings.providers.get(name)
            if provider is None or not provider.batch or facts.prices is None:
                continue
            price = facts.prices.find(provider.price_name(target), facts.at_us)
            if price is None or any(schedule.tier == "batch" for schedule in price.terms.schedules):
                continue
            words = (
                f"the price of `{target}` has no batch rates: its lines go to `{name}` one by one, "
                "at the ordinary price"
            )
            place: Place = ("models", model, *inside)
            yield warning(place, words, upon=(*PRICED_BY, ("providers", name)))


def check_tier_prices(settings: Settings, facts: ConfigFacts) -> Iterator[ConfigFault]:
    """Yield models whose price does not list the service tier that they request."""
    for model, definition in logical_models(settings):
        for inside, target in definition.placed_targets():
            provider = settings.providers.get(target.partition("/")[0])
            if provider is None or provider.tier is None or facts.prices is None:
                continue
            price = facts.prices.find(provider.price_name(target), facts.at_us)
            if price is None or lists_tier(price, tier_of(provider.tier)):
                continue
            words = (
                f"the price of `{target}` has no `{provider.tier}` rates: it is expected to cost "
                "the standard ones, and refused to keys under a hard budget; list the tier under "
                "`tiers` in a price file"
            )
            yield warning(("models", model, *inside), words, upon=(*PRICED_BY, ("providers",)))


def check_comparator_prices(settings: Settings, facts: ConfigFacts) -> Iterator[ConfigFault]:
    for model, definition in logical_models(settings):
        for index, other in enumerate(definition.compare_with):
            place: Place = ("models", model, "compare_with", index)
            yield from _check_priced(facts, place, other, "nothing is compared with it")


def check_odd_prices(settings: Settings, facts: ConfigFacts) -> Iterator[ConfigFault]:
    """Yield odd prices of files and imports; `breakeven prices check` covers price lists."""
    if facts.prices is None:
        return
    stated = [
        each_price
        for each_price in facts.prices.prices_in_force(facts.at_us)
        if each_price.rank > BUNDLED_RANK
    ]
    bands = PriceBands(facts.prices, facts.at_us) if stated else None
    for price in stated:
        doubt = None if bands is None else bands.doubt(price)
        if doubt is not None:
            configured = price.rank <= len(settings.prices)
            place: Place = ("prices", price.rank - 1) if configured else ("prices",)
            yield warning(place, f"the price of `{price.name}` ({price.book}) looks wrong: {doubt}")


def _check_priced(
    facts: ConfigFacts, place: Place, name: str, result: str
) -> Iterator[ConfigFault]:
    book = facts.prices
    if book is None or book.find(name, facts.at_us) is not None:
        return
    near = suggest(name, (price.name for price in book.prices_in_force(facts.at_us)))
    cure = f"; state one in a file under `prices`{near}"
    upon: tuple[Place, ...] = PRICED_BY
    if place[-2:-1] == ("targets",):
        upon += (("providers", name.partition("/")[0]),)
    yield warning(place, f"no price for `{name}`: {result}{cure}", upon=upon)


def check_variables(settings: Settings, facts: ConfigFacts) -> Iterator[ConfigFault]:
    return iter(()) if facts.environ is None else check_unset_variables(settings, facts.environ)


def check_needs(settings: Settings, facts: ConfigFacts) -> Iterator[ConfigFault]:
    return check_adapter_needs(settings, facts.environ)


def check_missing_extras(settings: Settings, _: ConfigFacts) -> Iterator[ConfigFault]:
    return check_extras(settings)


def check_names(settings: Settings, facts: ConfigFacts) -> Iterator[ConfigFault]:
    return check_unknown_names(settings, facts.names)


def check_hosts(settings: Settings, facts: ConfigFacts) -> Iterator[ConfigFault]:
    return check_private_hosts(settings, facts.addresses)


def check_act_scored(settings: Settings, facts: ConfigFacts) -> Iterator[ConfigFault]:
    """Yield a fault for each pool that would act on advice without a score."""
    for name, pool in settings.pools.items():
        fault = None
        if pool.scale is not None:
            fault = score_fault(name, pool.scale, facts.scores.get(name))
        if fault is not None:
            yield fault


def check_step_promises(settings: Settings, facts: ConfigFacts) -> Iterator[ConfigFault]:
    return promise_faults(settings, facts.steps)


PLAUSIBLE: tuple[Check, ...] = (
    check_something_served,
    check_used_pools,
    check_gpu_types,
    check_simulated_profiles,
    check_contracts_in_force,
    check_named_paths,
    check_target_prices,
    check_batch_prices,
    check_tier_prices,
    check_comparator_prices,
    check_odd_prices,
    check_variables,
    check_needs,
    check_missing_extras,
    check_names,
    check_hosts,
    check_step_promises,
    check_act_scored,
)
