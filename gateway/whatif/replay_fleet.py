"""Fleet of a what-if: targets, engine models, prices, API latencies.

It is the same for each policy set that is replayed. Engines are those of the configuration; their
speed is a measured model: a simulated pool's profile, a running host's own measurement, or one that
the caller names for the pool.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from backends.engines import ENGINE_KINDS
from backends.simulator.latency import Latency
from backends.simulator.profiles import PROFILES
from backends.simulator.shape import EngineShape
from backends.stepmodel import FittedStepModel
from gateway.config.aliases import resolve_model
from gateway.config.machines import machine_shares
from gateway.config.pool_seats import seats_of
from gateway.config.settings import ModelSection, PoolSection, Settings
from gateway.config.step_promises import (
    VLLM_LIMITS,
    PoolSteps,
    broken_promises,
    is_started,
    promises_on,
    started_steps,
)
from gateway.control.decisions.hypothetical import make_null_backend, unstarted_runtime
from gateway.fleet.estimate_table import seen_overruns
from gateway.fleet.fleet import Fleet
from gateway.runtime import EngineReplica, Runtime
from ledger.fleet.pool_records import CapacityRow
from ledger.prices.book import Price, PriceBook
from ledger.queries.traffic import RecordedLength
from router.request_kinds import DECODED_KINDS

PRIOR_SOURCE = "assumed: a hosted API's usual latencies"


class HouseError(Exception):
    """A missing input of the what-if; the text names it and how to provide it."""


@dataclass(frozen=True, slots=True)
class EngineModelSource:
    """Performance model of a pool's engine, and its source."""

    shape: EngineShape
    source: str


@dataclass(frozen=True, slots=True)
class ApiLatencySource:
    """Latency of an API, and its source."""

    latency: Latency
    source: str


@dataclass(frozen=True, slots=True)
class ReplayClock:
    """Recorded times: the first request at `from_us`, intervals `times` as long as played.

    Policies use hours of the week, which stay those of the recording at any speed.
    """

    from_us: int
    times: float = 1.0

    def wall_us(self, at_s: float) -> int:
        return self.from_us + int(1e6 * at_s * self.times)


class ReplayFleet:
    """The fleet. `start_us` is the wall clock at the first request; `seen` has API latencies."""

    def __init__(
        self,
        settings: Settings,
        prices: PriceBook,
        engines: Mapping[str, EngineModelSource],
        seen: Mapping[str, ApiLatencySource],
        start_us: int,
        entered: Mapping[str, int | None] | None = None,
    ) -> None:
        """Build the fleet; `entered` is the ledger's pico-USD per hour of one GPU, by pool."""
        self.settings = settings
        self.prices = prices
        self.engines = engines
        self.start_us = start_us
        self.calendar = ReplayClock(start_us)
        self.lengths: Sequence[RecordedLength] = ()  # from answers before the first request
        self._entered = entered or {}
        self.runtime: Runtime = unstarted_runtime(settings)
        self.fleet = Fleet(settings, self.runtime, make_null_backend)
        self.overruns = seen_overruns(settings.state)
        self.seen = {
            name: seen.get(name, ApiLatencySource(Latency(), PRIOR_SOURCE))
            for name in self.runtime.apis
        }

    def model(self, name: str) -> tuple[str, ModelSection] | None:
        """Return the logical model of a requested name; aliases and pass-through are resolved."""
        return resolve_model(self.settings, name)

    def value_prices(self, name: str) -> Sequence[Price]:
        """Return the prices of a model elsewhere: at its APIs, else at its comparators."""
        found = self.model(name)
        if found is None:
            return ()
        model = found[1]
        targets = self.fleet.targets(found[0], model)
        names = [target.price_name or target.name for target in targets if not target.own]
        known = [self.prices.find(named, self.start_us) for named in names or model.compare_with]
        return [price for price in known if price is not None]

    def shape_under(self, rules: Settings, engine: EngineReplica) -> EngineShape:
        """Return an engine as `serve` starts it under a policy set."""
        shape = self._pool_shape(rules, engine.pool)
        seats = seats_of(self.settings.pools[engine.pool])
        own = {f"pool:{engine.pool}/{seat.number}": seat.budget_tokens for seat in seats}
        budget = own[engine.name]
        return shape if budget is None else replace(shape, prefill_budget_tokens=budget)

    def _pool_shape(self, rules: Settings, pool: str) -> EngineShape:
        shape = self.engines[pool].shape
        steps = started_steps(rules, pool, PoolSteps.of(shape))
        return replace(
            shape,
            max_num_seqs=steps.max_num_seqs,
            prefill_budget_tokens=steps.budget_tokens,
        )

    def broken_under(self, rules: Settings) -> dict[str, list[str]]:
        """Return by policy the promises that the prefill budgets break, each with a remedy."""
        found: dict[str, list[str]] = {}
        for pool in self.engines:
            steps = PoolSteps.of(self._pool_shape(rules, pool))
            managed = is_started(rules, pool)
            for broken in broken_promises(pool, steps, promises_on(rules, pool)):
                words = f"{broken.words}; {broken.cure(managed=managed)}"
                found.setdefault(broken.policy, []).append(words)
        return found

    def api_price(self, target: str) -> Price | None:
        """Return the price of an API's model, by its name in the price book."""
        provider = self.settings.providers.get(target.partition("/")[0])
        name = target if provider is None else provider.price_name(target)
        return self.prices.find(name, self.start_us)

    def fixed_pusd_per_hour(self) -> tuple[int, list[str]]:
        """Return the rent of all replicas of the used pools, and the pools without a rate.

        Rates in the ledger take precedence over the configuration.
        """
        total, unknown, paid = 0, [], machine_shares(self.settings)
        for name in self.engines:
            rate, pool = self._entered.get(name), self.settings.pools[name]
            rate = paid[name].pusd_per_hour if rate is None else rate
            seats = sum(seat.pool == name for seat in self.runtime.engines)
            if rate is None:
                unknown.append(name)
            else:
                total += rate * pool.gpu.count * seats
        return total, unknown


def pools_of_models(settings: Settings, models: Iterator[str]) -> list[str]:
    """Return the own pools that these models may use, in file order."""
    targets: set[str] = set()
    for name in models:
        found = resolve_model(settings, name)
        targets |= set(found[1].reachable) if found is not None else set()
    return [name for name in settings.pools if f"pool:{name}" in targets]


def engine_models(
    settings: Settings,
    pools: Sequence[str],
    named: Mapping[str, EngineModelSource],
    measured: Sequence[CapacityRow],
) -> dict[str, EngineModelSource]:
    """Return an engine model for each pool. Raises `HouseError` if one is unknown."""
    for name in named:
        if name not in settings.pools:
            known = ", ".join(settings.pools) or "none"
            raise HouseError(f"--engine {name}=...: there is no pool `{name}`; pools: {known}")
    return {name: _model(name, settings.pools[name], named, measured) for name in pools}


def _model(
    name: str,
    pool: PoolSection,
    named: Mapping[str, EngineModelSource],
    measured: Sequence[CapacityRow],
) -> EngineModelSource:
    engine = pool.engine
    if DECODED_KINDS.isdisjoint(engine.kinds):
        raise HouseError(f"pools.{name} serves no conversations; a simulation has no model of it")
    found = named.get(name)
    profile = ENGINE_KINDS[engine.kind].profile(engine.model)
    if found is None and profile is not None:
        found = EngineModelSource(profile.shape, f"profile {profile.name}")
    if found is None:
        rows = [row for row in measured if row.pool == name]
        found = next((source for source in map(_measured_source, rows) if source is not None), None)
    if found is None:
        raise HouseError(
            f"pools.{name}: its engine was never measured: use --engine {name}=PROFILE with one of"
            f" {', '.join(sorted(PROFILES))}"
        )
    shape = found.shape
    return replace(
        found,
        shape=replace(
            shape,
            max_num_seqs=engine.max_num_seqs or shape.max_num_seqs,
            prefill_budget_tokens=engine.prefill_budget_tokens or shape.prefill_budget_tokens,
            context_tokens=engine.context_tokens or shape.context_tokens,
        ),
    )


def _measured_source(row: CapacityRow) -> EngineModelSource | None:
    a, b, c = row.step_a_s, row.step_b_s, row.step_c_s
    d, t0, tokens = row.step_d_s, row.step_t0_s, row.kv_capacity_tokens
    if a is None or b is None or c is None or d is None or t0 is None or tokens is None:
        return None
    seqs, budget = VLLM_LIMITS
    shape = EngineShape(
        FittedStepModel(a, b, c, d, t0),
        blocks=tokens // 16 + 1,
        max_num_seqs=row.max_num_seqs or seqs,
        prefill_budget_tokens=row.prefill_budget_tokens or budget,
        context_tokens=row.context_tokens or tokens,
    )
    return EngineModelSource(shape, f"{row.engine}: {row.source}")
