"""Pools with roles in a what-if: their engines are played as whole replicas, and it is said."""

from gateway.config.pool_seats import seat_count
from gateway.config.settings import PoolSection, Settings


def as_whole_replicas(settings: Settings) -> Settings:
    """Return the same engines, each of which reads and answers."""
    if not any(pool.roles for pool in settings.pools.values()):
        return settings
    pools = {name: _whole(pool) for name, pool in settings.pools.items()}
    return settings.model_copy(update={"pools": pools})


def note_on_roles(pool: PoolSection) -> str:
    """Return what a what-if does not play of a pool; empty where it has no roles."""
    if pool.roles is None:
        return ""
    apart = f"{pool.roles.prefill.count} for prefill and {pool.roles.decode.count} for decode"
    return (
        f"; roles are not played: {apart} are {seat_count(pool)} whole replicas here, with those"
        " that are"
    )


def _whole(pool: PoolSection) -> PoolSection:
    if pool.roles is None:
        return pool
    replicas = pool.engine.replicas + pool.roles.count
    engine = pool.engine.model_copy(update={"replicas": replicas})
    return pool.model_copy(update={"engine": engine, "roles": None})
