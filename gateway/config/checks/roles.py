"""Checks of engine roles: a missing side, or KV that cannot be transferred.

Roles need engines that transfer KV, addresses that only trusted hosts reach (KV is not encrypted),
no conflicting flags, and a known KV size to forecast transfers.
"""

from collections.abc import Iterator
from pathlib import Path

from backends.engine.kvtransfer import FLAG, is_private_host, names_transfer
from backends.engine.modelconfig import UnsupportedModel, read_model
from backends.engine.tuned import number
from backends.engines import ENGINE_KINDS
from backends.origin import Origin
from gateway.config.faults import ConfigFault, Place
from gateway.config.schema import PoolSection, Settings
from gateway.config.schema_roles import EngineRoleSection, RolesSection
from router.request_kinds import KIND_TRAITS, RequestKind

BUDGET_FLAG = "--max-num-batched-tokens"
SIMULATED_KV_BYTES = 131_072  # default: that of an 8B model


def check_roles(settings: Settings) -> Iterator[ConfigFault]:
    for name, pool in settings.pools.items():
        if pool.roles is not None:
            here = ("pools", name, "roles")
            yield from _sides(pool.roles, here)
            yield from _engine(pool, ("pools", name))
            yield from _addresses(pool.roles, here)


def kv_bytes_per_token(pool: PoolSection) -> int | None:
    """Return the KV bytes per token, as configured or by the model's shape; `None` if unknown."""
    if pool.roles is None or pool.roles.kv_bytes_per_token is not None:
        return None if pool.roles is None else pool.roles.kv_bytes_per_token
    if ENGINE_KINDS[pool.engine.kind].simulated:
        return SIMULATED_KV_BYTES
    try:
        return read_model(Path(pool.engine.model or "")).kv_bytes_per_token()
    except (UnsupportedModel, OSError):
        return None


def unknown_kv_sizes(settings: Settings) -> Iterator[tuple[Place, str]]:
    """Yield the pools whose KV size per token is unknown. Reads their models' files."""
    for name, pool in settings.pools.items():
        if pool.roles is not None and kv_bytes_per_token(pool) is None:
            words = "is required, in bytes: the model's files do not contain it"
            yield ("pools", name, "roles", "kv_bytes_per_token"), words


def _sides(roles: RolesSection, here: Place) -> Iterator[ConfigFault]:
    for side, other in (("prefill", "decode"), ("decode", "prefill")):
        if not getattr(roles, side).count:
            words = f"name at least one engine: those of `{other}` cannot serve alone"
            yield ConfigFault((*here, side), words)


def _engine(pool: PoolSection, here: Place) -> Iterator[ConfigFault]:
    engine, roles = pool.engine, pool.roles
    assert roles is not None  # checked by the caller
    if not ENGINE_KINDS[engine.kind].moves_kv:
        able = ", ".join(name for name, kind in ENGINE_KINDS.items() if kind.moves_kv)
        words = f"cannot transfer KV between engines: use one of {able}, or leave out `roles`"
        yield ConfigFault((*here, "engine", "kind"), words)
    if not any(KIND_TRAITS[RequestKind(kind)].decoded for kind in engine.kinds):
        words = "has no kind that is decoded: leave out `roles`, or add `chat` to `engine.kinds`"
        yield ConfigFault((*here, "roles"), words)
    if engine.profile is not None:
        words = "was tuned for whole replicas: leave it out, or use a pool of its own"
        yield ConfigFault((*here, "engine", "profile"), words)
    if names_transfer(engine.flags):
        words = f"`{FLAG}` is derived from `roles`: leave it out"
        yield ConfigFault((*here, "engine", "flags"), words)
    if number(engine.flags, BUDGET_FLAG) is not None:
        words = (
            f"`{BUDGET_FLAG}` would apply to every role: set `prefill_budget_tokens` of "
            "each role instead"
        )
        yield ConfigFault((*here, "engine", "flags"), words)
    sizes = len(roles.whole_budget_tokens)
    if sizes and sizes != engine.replicas:
        words = f"{sizes} sizes for {engine.replicas} of `engine.replicas`: state one for each"
        yield ConfigFault((*here, "roles", "whole_budget_tokens"), words)


def _addresses(roles: RolesSection, here: Place) -> Iterator[ConfigFault]:
    if not is_private_host(roles.side_host):
        words = f"`{roles.side_host}` is not a private address in digits: KV moves unencrypted"
        yield ConfigFault((*here, "side_host"), words + "; use one of an inner network")
    for side, section in (("prefill", roles.prefill), ("decode", roles.decode)):
        yield from _endpoints(section, (*here, side, "endpoints"))


def _endpoints(section: EngineRoleSection, here: Place) -> Iterator[ConfigFault]:
    for index, url in enumerate(section.endpoints):
        try:
            host = Origin.parse(url)[0].host
        except ValueError as error:
            yield ConfigFault((*here, index), f"is not like http://10.0.0.5:8000/v1: {error}")
            continue
        if not is_private_host(host):
            words = f"`{host}` is not a private address in digits: KV moves unencrypted"
            yield ConfigFault((*here, index), words + "; name the engine's inner address")
