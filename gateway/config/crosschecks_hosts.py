"""Checks of addresses, ports, engines and timeouts that cannot work together.

Pure checks like those of `gateway.config.crosschecks`, which lists them.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_network
from typing import NamedTuple

from backends.address_policy import AddressPolicy, is_network, parse_address
from backends.engines import ENGINE_KINDS
from backends.origin import Origin
from backends.providers import ADAPTER_KIND, ANTHROPIC, DEFAULT_KIND, PROVIDER_KINDS
from gateway.config.checks.provider_accounts import check_accounts
from gateway.config.checks.provider_names import (
    check_adapter_names,
    prefix_of,
    wire_of_provider,
)
from gateway.config.crosschecks_oidc import check_oidc
from gateway.config.crosschecks_peers import check_peers
from gateway.config.faults import ConfigFault, Place, suggest, warning
from gateway.config.kv_event_address import kv_events_address, socket_path
from gateway.config.pool_seats import seat_count, seats_of, started_count
from gateway.config.schema import ProviderSection, Settings
from gateway.config.served_kinds import can_apis_serve, can_engines_serve
from ledger.unixsocket import PATH_BYTES
from router.types import Feature

LAST_PORT = 65535
TOTAL: Place = ("server", "timeouts", "total_s")
_KEYS = ("api_key_env", "api_key_file", "api_key_exec")
_LISTENING = ("host", "port", "replicas", "enabled")  # settings that define listening addresses
KV_ADDRESS = re.compile(r"tcp://[^/\s]+:\d{1,5}|ipc:///\S+")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")
ENGINE_DEFAULTS_MOVE = "another free port is used; set `port`"


class PortClaim(NamedTuple):
    """Ports that one of our processes listens on; `moves`: another free port may be used."""

    place: Place
    host: str
    ports: range
    moves: bool


def check_engines(settings: Settings) -> Iterator[ConfigFault]:
    for name, pool in settings.pools.items():
        engine, here = pool.engine, ("pools", name, "engine")
        if not seat_count(pool):
            words = "set `replicas` (engines to start here) or `endpoints` (running engines)"
            yield ConfigFault(here, words)
        if started_count(pool) and engine.model is None:
            yield ConfigFault((*here, "model"), "is needed to start replicas")
        tunable = ENGINE_KINDS[engine.kind].takes_profile and started_count(pool)
        if engine.profile is not None and not tunable:
            words = "is for vLLM engines that are started here (`replicas`): leave it out"
            yield ConfigFault((*here, "profile"), words)
        for key, default in (("metrics", "auto"), ("kv_capacity_tokens", None)):
            attached = seat_count(pool) - started_count(pool)
            if getattr(engine, key) != default and not attached:
                yield ConfigFault((*here, key), "is for engines that already run (`endpoints`)")
        yield from _kv_events(settings, name, (*here, "kv_events"))


def _kv_events(settings: Settings, pool: str, here: Place) -> Iterator[ConfigFault]:
    engine = settings.pools[pool].engine
    if engine.kv_events is False:
        return
    if not ENGINE_KINDS[engine.kind].tells_cache:
        yield ConfigFault(here, "only vLLM tells of its prefix cache")
    elif isinstance(engine.kv_events, tuple):
        if len(engine.kv_events) != len(engine.endpoints):
            words = f"{len(engine.kv_events)} addresses of {len(engine.endpoints)} `endpoints`"
            yield ConfigFault(here, words)
        for index, address in enumerate(engine.kv_events):
            if not KV_ADDRESS.fullmatch(address):
                words = "is not an address as tcp://10.0.0.5:5557, tcp://*:5557 or ipc:///a/path"
                yield ConfigFault((*here, index), words)
    elif not started_count(settings.pools[pool]):
        yield ConfigFault(here, "`true` is for `replicas`; of `endpoints` name the addresses")
    else:
        last = max(seat.number for seat in seats_of(settings.pools[pool]) if seat.url is None)
        path = socket_path(kv_events_address(settings, pool, last) or "")
        if len(path.encode()) > PATH_BYTES:
            words = f"the socket's path is longer than {PATH_BYTES} bytes: {path}"
            yield ConfigFault(here, words + "; set a shorter `state_dir`")


def check_features(settings: Settings) -> Iterator[ConfigFault]:
    named: list[tuple[Place, Iterable[str]]] = [
        (("pools", name, "engine", "features"), pool.engine.features)
        for name, pool in settings.pools.items()
    ]
    named += [
        (("providers", name, "features"), provider.features)
        for name, provider in settings.providers.items()
    ]
    known = [feature.value for feature in Feature]
    for place, words in named:
        for index, word in enumerate(words):
            if word not in known:
                message = f"no feature named `{word}`{suggest(word, known)}"
                yield ConfigFault((*place, index), message)


def check_served_kinds(settings: Settings) -> Iterator[ConfigFault]:
    for name, pool in settings.pools.items():
        for index, kind in enumerate(pool.engine.kinds):
            if not can_engines_serve(kind):
                words = f"own engines do not serve `{kind}` here: name a provider that does"
                yield ConfigFault(("pools", name, "engine", "kinds", index), words)
    for name, provider in settings.providers.items():
        for index, kind in enumerate(provider.kinds):
            if not can_apis_serve(kind):
                words = f"APIs are not asked for `{kind}`: own engines serve it"
                yield ConfigFault(("providers", name, "kinds", index), words)


def check_dialects(settings: Settings) -> Iterator[ConfigFault]:
    for name, provider in settings.providers.items():
        if "kinds" not in provider.model_fields_set:  # otherwise it serves all kinds of its client
            continue
        for index, kind in enumerate(provider.kinds):
            client = wire_of_provider(name, provider)
            if not client.can_serve(kind):
                words = (
                    f"{client.title} does not serve `{kind}` here: add a provider of "
                    f"`kind: {DEFAULT_KIND}` with the `base_url` under which its own path stands"
                )
                yield ConfigFault(("providers", name, "kinds", index), words)


def check_providers(settings: Settings) -> Iterator[ConfigFault]:
    for name, provider in settings.providers.items():
        here = ("providers", name)
        if "/" in name:
            yield ConfigFault(here, "a provider's name has no `/`: targets are `PROVIDER/MODEL`")
        if provider.start and not provider.simulated:
            words = "only a stand-in can be started: set `simulated: true` as well"
            yield ConfigFault((*here, "start"), words)
        if provider.start and provider.base_url is not None:
            yield ConfigFault(
                (*here, "base_url"), "`start` chooses the address: leave out one of them"
            )
        named = [key for key in _KEYS if getattr(provider, key)]
        for other in named[1:]:
            yield ConfigFault((*here, other), f"set either `{named[0]}` or `{other}`")
        if provider.batch and not wire_of_provider(name, provider).takes_batches:
            taking = [kind for kind, client in PROVIDER_KINDS.items() if client.takes_batches]
            words = f"only providers of `kind: {', '.join(taking)}` can receive batches"
            yield ConfigFault((*here, "batch"), words)
        if _needs_address(name, provider):
            words = f"is needed: `{name}` is not one of the providers whose address is known"
            yield ConfigFault((*here, "base_url"), words + _known_otherwise(name))
        if _lacks_key(name, provider):
            words = "no key is named: most providers refuse such requests; set `api_key_env`"
            yield warning(here, words, upon=(here,))


def check_batches(settings: Settings) -> Iterator[ConfigFault]:
    limits = settings.batches
    taking = any(provider.batch for provider in settings.providers.values())
    if taking and limits.hand_on_s <= limits.spill_s:
        words = "is not longer than `spill_s`: lines spill before any could go to a batch"
        upon: tuple[Place, ...] = (("batches", "spill_s"), ("providers",))
        yield warning(("batches", "hand_on_s"), words, upon=upon)


def check_addresses(settings: Settings) -> Iterator[ConfigFault]:
    """Yield invalid URLs, URLs stated twice, and the gateway's own."""
    own = [claim for claim in _claims(settings) if claim.place[0] == "server"]
    for place, urls in _urls(settings):
        for index, url in enumerate(urls):
            here = (*place, index) if place[-1] == "endpoints" else place
            try:
                origin, _ = Origin.parse(url)
            except ValueError as error:
                yield ConfigFault(here, f"{error}; write it like http://10.0.0.5:8000/v1")
                continue
            why = _forbidden_reason(settings, place, origin.host)
            if why is not None:
                yield ConfigFault(here, f"`{url}` is {why}")
            if url.rstrip("/") in [other.rstrip("/") for other in urls[:index]]:
                yield ConfigFault(here, f"`{url}` is stated twice: it would count as two engines")
            if any(
                _is_same_host(origin.host, each_claim.host) and origin.port in each_claim.ports
                for each_claim in own
            ):
                yield ConfigFault(here, f"`{url}` is this gateway itself (server.port)")


def check_networks(settings: Settings) -> Iterator[ConfigFault]:
    for name, provider in settings.providers.items():
        for index, text in enumerate(provider.networks):
            try:
                ip_network(text)
            except ValueError as error:
                here = ("providers", name, "networks", index)
                yield ConfigFault(here, f"{error}; write it like 10.0.0.0/8 or fd00::/8")


def check_ports(settings: Settings) -> Iterator[ConfigFault]:
    claims = _claims(settings)
    for index, claim in enumerate(claims):
        if claim.ports and claim.ports[-1] > LAST_PORT:
            words = f"{len(claim.ports)} replicas from {claim.ports[0]} on end above {LAST_PORT}"
            yield ConfigFault(claim.place, words)
        for other in claims[:index]:
            shared = sorted(set(claim.ports) & set(other.ports))
            if shared and _is_same_host(claim.host, other.host):
                yield _collision(claim, other, shared)


def check_ledger_url(settings: Settings) -> Iterator[ConfigFault]:
    """Yield faults of the ledger's URL without repeating it, because it may hold a password."""
    url = settings.ledger.url
    if url and settings.ledger.url_env:
        yield ConfigFault(("ledger", "url_env"), "set either `url` or `url_env`")
    if url:
        from gateway.config.ledger_address import database_of  # noqa: PLC0415  (with SQLAlchemy)

        if database_of(url) not in ("sqlite", "postgresql"):
            words = "must be a URL like sqlite:///ledger.db or postgresql+psycopg://user@host/name"
            yield ConfigFault(("ledger", "url"), words)


def check_contract_days(settings: Settings) -> Iterator[ConfigFault]:
    for name, pool in settings.pools.items():
        since, until = pool.gpu.since, pool.gpu.until
        if since and until and since > until:
            words = f"the contract ends before it starts: `since` {since} is after `until` {until}"
            yield ConfigFault(("pools", name, "gpu", "until"), words)


def check_waits(settings: Settings) -> Iterator[ConfigFault]:
    """Yield timeouts of which one makes another ineffective."""
    telemetry, limits = settings.telemetry, settings.server.timeouts
    if telemetry.stale_s <= telemetry.scrape_s:
        words = f"must be more than scrape_s ({telemetry.scrape_s:g}), or every engine is `unknown`"
        yield ConfigFault(("telemetry", "stale_s"), words)
    said = limits.model_fields_set  # longer defaults are not reported
    for name in ("connect_s", "head_s", "idle_s", *({"whole_s"} & said)):
        wait_s = getattr(limits, name)
        if wait_s > limits.total_s:
            words = f"is never reached: a request ends after total_s ({limits.total_s:g})"
            yield warning(("server", "timeouts", name), words, upon=(TOTAL,))
    for index, rule in enumerate(settings.policies):
        if rule.queue_ms >= limits.total_s * 1000:
            words = f"is never reached: a request ends after total_s ({limits.total_s:g})"
            yield warning(("policies", index, "queue_ms"), words, upon=(TOTAL,))


def _urls(settings: Settings) -> Iterator[tuple[Place, tuple[str, ...]]]:
    for name, pool in settings.pools.items():
        yield ("pools", name, "engine", "endpoints"), pool.engine.endpoints
    for name, provider in settings.providers.items():
        if provider.base_url is not None:
            yield ("providers", name, "base_url"), (provider.base_url,)


def check_open_dashboards(settings: Settings) -> Iterator[ConfigFault]:
    """Yield faults of dashboards that are open to a network without a sign-in."""
    shown = settings.dashboard
    if shown.enabled and shown.access_file is None and shown.host not in LOOPBACK:
        words = (
            "can be reached from other machines: name the people who may sign in by "
            "`dashboard.access_file`"
        )
        yield ConfigFault(("dashboard", "host"), words)


def _claims(settings: Settings) -> list[PortClaim]:
    server, shown = settings.server, settings.dashboard
    claims = [PortClaim(("server", "port"), server.host, _from(server.port, 1), moves=False)]
    if shown.enabled:
        claims.append(
            PortClaim(("dashboard", "port"), shown.host, _from(shown.port, 1), moves=False)
        )
    for name, pool in settings.pools.items():
        stated = "port" in pool.engine.model_fields_set
        place = ("pools", name, "engine", "port")
        wanted = _from(pool.engine.port, started_count(pool))
        claims.append(PortClaim(place, LOOPBACK[0], wanted, moves=not stated))
    return claims


def _from(port: int, count: int) -> range:
    """Return the ports of a range; empty for port 0, which means any free port."""
    return range(port, port + count) if port else range(0)


def _is_same_host(name: str, other: str) -> bool:
    local = name in LOOPBACK and other in LOOPBACK
    return name == other or local or name in EVERYWHERE or other in EVERYWHERE


def _collision(claim: PortClaim, other: PortClaim, shared: list[int]) -> ConfigFault:
    numbers = str(shared[0]) if len(shared) == 1 else f"{shared[0]} to {shared[-1]}"
    theirs = ConfigFault(other.place, "").path
    upon = tuple((*each.place[:-1], key) for each in (claim, other) for key in _LISTENING)
    if claim.moves or other.moves:
        words = f"{numbers} is also {theirs}'s, by default: {ENGINE_DEFAULTS_MOVE}"
        return warning(claim.place, words, upon=upon)
    return ConfigFault(claim.place, f"{numbers} is also {theirs}'s; choose another port", upon=upon)


def _forbidden_reason(settings: Settings, place: Place, host: str) -> str | None:
    """Return why a numeric address is refused; names need a lookup and are checked later."""
    address = parse_address(host)
    if address is None:
        return None
    provider = settings.providers.get(str(place[1])) if place[0] == "providers" else None
    named = [net for net in (() if provider is None else provider.networks) if is_network(net)]
    return AddressPolicy(tuple(named)).is_refused(address, stated=True)


def check_messages(settings: Settings) -> Iterator[ConfigFault]:
    """Yield settings that need a target with Anthropic's Messages format, if there is none."""
    for name, provider in settings.providers.items():
        if PROVIDER_KINDS[provider.kind].speaks_messages:
            if provider.start:
                words = f"the stand-in that is started does not speak it: use `{DEFAULT_KIND}`"
                yield ConfigFault(("providers", name, "kind"), words)
            continue
        for member in ("betas", "tells_users"):
            # A policy set is checked within settings in which every field is set.
            if getattr(provider, member) != type(provider).model_fields[member].get_default():
                words = f"applies to `kind: {ANTHROPIC}` only"
                yield ConfigFault(("providers", name, member), words)
        if "messages" in provider.features:
            words = f"only providers of `kind: {ANTHROPIC}` speak Messages: leave `messages` out"
            yield ConfigFault(("providers", name, "features"), words)


def _needs_address(name: str, provider: ProviderSection) -> bool:
    here = provider.base_url is None and not provider.start
    kind, prefix = wire_of_provider(name, provider), prefix_of(name, provider)
    return here and not kind.finds_address and prefix not in kind.addresses


def _known_otherwise(name: str) -> str:
    hint = suggest(name, [each for kind in PROVIDER_KINDS.values() for each in kind.addresses])
    return hint or f"; for one that LiteLLM speaks set `kind: {ADAPTER_KIND}`"


def _lacks_key(name: str, provider: ProviderSection) -> bool:
    stands_in = provider.simulated or provider.start
    known = wire_of_provider(name, provider).addresses
    at_home = provider.base_url is None and prefix_of(name, provider) in known
    return at_home and not stands_in and not provider.names_a_key


def check_stored_responses(settings: Settings) -> Iterator[ConfigFault]:
    replay = settings.server.idempotency.replay
    if replay.enabled and replay.key_env is None:
        words = "name the environment variable that holds what encrypts kept answers"
        yield ConfigFault(("server", "idempotency", "replay", "key_env"), words)


HOST_CHECKS: tuple[Callable[[Settings], Iterator[ConfigFault]], ...] = (
    check_engines,
    check_features,
    check_providers,
    check_accounts,
    check_adapter_names,
    check_batches,
    check_served_kinds,
    check_dialects,
    check_messages,
    check_addresses,
    check_networks,
    check_ports,
    check_open_dashboards,
    check_oidc,
    check_peers,
    check_ledger_url,
    check_contract_days,
    check_waits,
    check_stored_responses,
)
