"""Targets of a worker, built once from settings and runtime.

A `Target` is the static part of a candidate; `gateway.fleet.candidates` adds its current state.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import Raw

from backends.address_policy import LOCALHOST, parse_address
from backends.base import Backend
from backends.disconnects import STOPS, UNKNOWN, OnDisconnect, documented
from backends.origin import Origin
from backends.providers import PROVIDER_KINDS, ProviderKind
from gateway.config.checks.provider_names import prefix_of, vendor_of, wire_of_provider
from gateway.config.checks.roles import kv_bytes_per_token
from gateway.config.machines import machine_shares
from gateway.config.pool_seats import SeatRole
from gateway.config.settings import ModelSection, PoolSection, ProviderSection, Settings
from gateway.fleet.kv_transfers import TransferTimes
from gateway.http.body import encode_raw
from gateway.runtime import EngineReplica, Runtime
from ledger.money import usd_to_pusd
from router.request_kinds import RequestKind
from router.types import Feature

PASSTHROUGH_LIMIT = 1024  # distinct pass-through models remembered per worker


@dataclass(frozen=True, slots=True)
class Target:
    """One own engine replica or one model of a provider.

    `provider` sends the bill; `section` is the configured provider that serves the request. `row`
    is its row in the shared load table. `price_name` is the model's name in the price book (APIs
    only). `rate_pusd_per_hour` is the contract cost of one replica's GPUs (own engines only; None:
    unknown).
    """

    name: str
    own: bool
    pool: str | None
    provider: str | None
    upstream_model: str
    simulated: bool
    backend: Backend
    row: int
    features: frozenset[Feature]
    kinds: frozenset[RequestKind]
    context_tokens: int | None
    accepts_salt: bool
    price_name: str | None = None
    rate_pusd_per_hour: int | None = None
    bid_price_pusd_per_s: int = 0
    takes_marks: bool = False  # accepts `cache_control` in chat messages
    template_arguments: bool = False  # accepts `chat_template_kwargs`
    by_priority: bool = False  # accepts the member `priority`; other engines reject it
    shares_row: bool = False  # shares its table row with all unnamed models of the provider
    on_disconnect: OnDisconnect = UNKNOWN  # behaviour after a disconnect
    speaks_messages: bool = False  # accepts Anthropic's Messages format unchanged
    tells_users: bool = False  # receives the id of the user
    vendor: str = ""  # vendor of the API by LiteLLM's name; "": unknown
    tier: str = ""  # default service tier, in the provider's term
    role: SeatRole = "whole"
    is_apart: bool = False  # its pool separates prefill and decode
    # Decode engine: the prefill engines of its pool. Prefill engine: those that can answer.
    partners: tuple["Target", ...] = field(default=(), hash=False, compare=False, repr=False)
    transfers: TransferTimes | None = field(default=None, hash=False, compare=False)
    answers_too: bool = False  # a prefill engine that may also answer requests
    lease_s: float = 0.0  # after which KV that was not fetched is freed
    # Members added to each request body.
    extra: Mapping[str, Raw] = field(default_factory=dict, hash=False)

    @property
    def goes_on(self) -> bool:
        """Return whether the target may finish an answer after the gateway disconnects."""
        return not self.own and self.on_disconnect != STOPS

    @property
    def section(self) -> str | None:
        """Return the provider's section of the configuration; None for an own engine."""
        return None if self.own else self.name.partition("/")[0]

    @property
    def api(self) -> str | None:
        """Return the name of the vendor whose API this is; None for an own engine."""
        return self.vendor or self.section

    @property
    def replica(self) -> str | None:
        return self.name.rpartition("/")[2] if self.own else None


def serves_by_priority(pool: PoolSection) -> bool:
    """Return whether the pool's engines run with `--scheduling-policy priority`."""
    return "--scheduling-policy=priority" in "=".join(pool.engine.flags)


def later_prices(
    model: ModelSection, stages: Sequence[tuple[Target, ...]], number: int
) -> tuple[str, ...]:
    """Return the price names of the APIs that take over from a full stage without an API.

    They are from the first later stage that has an API and accepts any cause. `number` counts from
    0.
    """
    if not all(target.own for target in stages[number]):
        return ()
    for stage, targets in list(zip(model.then, stages[1:], strict=True))[number:]:
        apis = [target.price_name or target.name for target in targets if not target.own]
        if "any" in stage.causes and apis:
            return tuple(apis)
    return ()


BackendFor = Callable[[str, PoolSection | ProviderSection, str | None], Backend]
"""(name, settings, resolved base URL) -> a wire client; the worker's `bootstrap` supplies it."""


class Fleet:
    """All targets of a worker, by logical model."""

    def __init__(self, settings: Settings, runtime: Runtime, backend_for: BackendFor) -> None:
        self._settings = settings
        self._addresses = runtime.providers
        self._api_rows = {name: row for row, name in enumerate(runtime.apis)}
        self._api_backends: dict[str, Backend] = {
            name: backend_for(name, provider, runtime.providers[name])
            for name, provider in settings.providers.items()
        }
        self._pools: dict[str, list[Target]] = {name: [] for name in settings.pools}
        paid = machine_shares(settings)
        for row, seat in enumerate(runtime.engines):
            pool = settings.pools[seat.pool]
            each = paid[seat.pool].pusd_per_hour
            rate = None if each is None else each * pool.gpu.count
            self._pools[seat.pool].append(
                Target(
                    name=seat.name,
                    own=True,
                    pool=seat.pool,
                    provider=None,
                    upstream_model=seat.served_name,
                    simulated=seat.simulated,
                    backend=backend_for(seat.name, pool, seat.base_url),
                    row=row,
                    features=_features(pool.engine.features),
                    by_priority=serves_by_priority(pool),
                    kinds=frozenset(RequestKind(kind) for kind in pool.engine.kinds),
                    context_tokens=pool.engine.context_tokens,
                    accepts_salt=pool.engine.accepts_salt,
                    template_arguments=True,
                    rate_pusd_per_hour=rate,
                    bid_price_pusd_per_s=_bid_price(pool, seat),
                    role=seat.role,
                    is_apart=pool.roles is not None,
                    lease_s=float(seat.lease_s),
                    on_disconnect=STOPS,
                    extra=_members(pool.engine.extra_body),
                )
            )
        for name, pool in settings.pools.items():
            if pool.roles is not None:
                self._pools[name] = pair_roles(pool, self._pools[name])
        self._apis: dict[str, Target] = {}
        self._by_model = self._expand_all()

    def targets(self, name: str, model: ModelSection) -> tuple[Target, ...]:
        """Return the targets of all stages of a resolved model, without duplicates."""
        stages = self.stages(name, model)
        if len(stages) == 1:
            return stages[0]
        return tuple({target.name: target for stage in stages for target in stage}.values())

    def stages(self, name: str, model: ModelSection) -> tuple[tuple[Target, ...], ...]:
        """Return the targets by stage; pass-through models are expanded on demand."""
        known = self._by_model.get(name)
        return known if known is not None else self._expand(model)

    def rerate(self, rates: Mapping[str, int | None]) -> bool:
        """Store the hourly cost of one GPU of each pool; return whether any changed.

        Targets are immutable: callers that keep targets must get them again after a change.
        """
        changed = False
        for pool, targets in self._pools.items():
            each = rates.get(pool)
            rate = None if each is None else each * self._settings.pools[pool].gpu.count
            if pool in rates and any(target.rate_pusd_per_hour != rate for target in targets):
                self._pools[pool] = [replace(target, rate_pusd_per_hour=rate) for target in targets]
                changed = True
        if changed:
            self._by_model = self._expand_all()
        return changed

    @property
    def backends(self) -> Mapping[str, Backend]:
        """Return all wire clients by target or provider name, for closing them."""
        own = {target.name: target.backend for pool in self._pools.values() for target in pool}
        return own | self._api_backends

    @property
    def speaks_messages(self) -> bool:
        """Return whether any provider accepts requests in Anthropic's Messages format unchanged."""
        providers = self._settings.providers.values()
        return any(PROVIDER_KINDS[provider.kind].speaks_messages for provider in providers)

    def _expand_all(self) -> dict[str, tuple[tuple[Target, ...], ...]]:
        return {
            name: self._expand(model)
            for name, model in self._settings.models.items()
            if isinstance(model, ModelSection) and model.same_as is None
        }

    def _expand(self, model: ModelSection) -> tuple[tuple[Target, ...], ...]:
        named = (model.targets, *(stage.targets for stage in model.then))
        return tuple([self._expand_stage(model, names) for names in named])

    def _expand_stage(self, model: ModelSection, names: Sequence[str]) -> tuple[Target, ...]:
        found: list[Target] = []
        for name in names:
            if name.startswith("pool:"):
                found += [_with_adapter(model.adapter, target) for target in self._pools[name[5:]]]
            else:
                found.append(self._api(name))
        return tuple(found)

    def _api(self, name: str) -> Target:
        target = self._apis.get(name)
        if target is not None:
            return target
        provider_name, _, upstream = name.partition("/")
        provider = self._settings.providers[provider_name]
        wire = wire_of_provider(provider_name, provider)
        row = self._api_rows.get(name, self._api_rows[f"{provider_name}/*"])
        target = Target(
            name=name,
            own=False,
            pool=None,
            provider=provider.sends_bills(provider_name),
            upstream_model=upstream,
            simulated=provider.simulated,
            backend=self._api_backends[provider_name],
            row=row,
            features=self._features_of(provider, provider_name),
            kinds=frozenset(RequestKind(kind) for kind in provider.kinds if wire.can_serve(kind)),
            context_tokens=None,
            accepts_salt=True,  # providers isolate their prefix caches by account
            price_name=provider.price_name(name),
            takes_marks=_takes_marks(provider, provider_name),
            shares_row=name not in self._api_rows,
            on_disconnect=_on_disconnect(provider, provider_name),
            speaks_messages=wire.speaks_messages,
            tells_users=provider.tells_users,
            template_arguments=provider.template_arguments,
            vendor=vendor_of(provider_name, provider),
            tier=provider.tier or "",
            extra=_members(provider.extra_body),
        )
        if len(self._apis) < PASSTHROUGH_LIMIT:
            self._apis[name] = target
        return target

    def _features_of(self, provider: ProviderSection, name: str) -> frozenset[Feature]:
        """Return the features of a provider's targets.

        `MEDIA_URLS` is added for a provider that fetches media from outside the network.
        """
        wire = wire_of_provider(name, provider)
        features = _features(provider.features) - {Feature.MESSAGES}
        if _NAMED not in provider.model_fields_set:
            features -= _features(tuple(wire.lacks))
            features |= {Feature.FILES} if wire.reads_files(prefix_of(name, provider)) else set()
        if wire.speaks_messages:  # part of the wire dialect, whatever is configured
            features |= {Feature.MESSAGES}
        if Feature.IMAGES in features and _stands_outside(provider, wire, self._addresses[name]):
            return features | {Feature.MEDIA_URLS}
        return features


def pair_roles(pool: PoolSection, targets: Sequence[Target]) -> list[Target]:
    """Return the targets with partners: prefill engines for decode engines, and vice versa."""
    assert pool.roles is not None  # checked by the caller
    roles = pool.roles
    bytes_of_token = kv_bytes_per_token(pool) or 0
    times = TransferTimes(roles.setup_ms / 1e3, bytes_of_token / (roles.gb_per_s * 1e9))
    answering = tuple(target for target in targets if target.role != "prefill")
    reading = {
        target.name: replace(
            target, partners=answering, transfers=times, answers_too=roles.prefill_answers
        )
        for target in targets
        if target.role == "prefill"
    }
    found = []
    for target in targets:
        if target.role == "decode":
            found.append(replace(target, partners=tuple(reading.values()), transfers=times))
        else:
            found.append(reading.get(target.name, target))
    return found


def _bid_price(pool: PoolSection, seat: EngineReplica) -> int:
    """Return the configured bid price of the engine's role or pool, in pico-USD/s; 0: none."""
    stated = None
    if pool.roles is not None and seat.role != "whole":
        side = pool.roles.prefill if seat.role == "prefill" else pool.roles.decode
        stated = side.bid_price_usd_per_s
    return usd_to_pusd(pool.bid_price_usd_per_s if stated is None else stated)


_NAMED = "features"  # a configured list is complete


def _with_adapter(adapter: str | None, target: Target) -> Target:
    """Return the target with the adapter's name in place of the model's name."""
    return target if adapter is None else replace(target, upstream_model=adapter)


def _stands_outside(provider: ProviderSection, wire: ProviderKind, base_url: str | None) -> bool:
    """Return whether the provider fetches media itself, from outside the network."""
    if not wire.fetches_media or provider.networks:
        return False
    if base_url is None:
        return True
    host = Origin.parse(base_url)[0].host
    address = parse_address(host)
    return address.is_global if address is not None else host != LOCALHOST


def _on_disconnect(provider: ProviderSection, name: str) -> OnDisconnect:
    """Return the configured behaviour on disconnect, else the documented one.

    A simulated provider stops.
    """
    if provider.on_disconnect is not None:
        return provider.on_disconnect
    return STOPS if provider.start else documented(name)


def _takes_marks(provider: ProviderSection, name: str) -> bool:
    return wire_of_provider(name, provider).marks_cache(prefix_of(name, provider))


def _members(stated: Mapping[str, Any]) -> dict[str, Raw]:
    return {name: encode_raw(value) for name, value in stated.items()}


def _features(names: tuple[str, ...]) -> frozenset[Feature]:
    return frozenset(Feature(name) for name in names)
