"""Ledger rows of an engine stored by telemetry, and the reason of an unhealthy state."""

from typing import Any

from backends.health import EngineHealth, HealthState
from backends.metrics import VLLM
from gateway.config.schema import PoolSection
from gateway.host.scrape import EngineScraper
from gateway.runtime import EngineReplica


def catalog_row(
    at_us: int, seat: EngineReplica, pool: PoolSection, watch: EngineScraper, version: str | None
) -> dict[str, Any]:
    """Return the description of the engine for the ledger's catalog."""
    sample = watch.sample
    told = None if sample is None or sample.dialect == VLLM else sample.dialect
    return {
        "at_us": at_us,
        "pool": seat.pool,
        "engine": seat.name,
        "kind": pool.engine.kind if told is None else told,
        "version": version,
        "model": pool.engine.model or seat.served_name,
        "gpu_type": pool.gpu.type,
        "flags": [*seat.tuned, *pool.engine.flags],
        "context_tokens": watch.limits.context_tokens or None,
        "max_num_seqs": watch.limits.max_num_seqs,
        "prefill_budget_tokens": watch.limits.prefill_budget_tokens,
        "kv_block_tokens": None if sample is None else sample.kv_block_tokens,
        "simulated": seat.simulated,
    }


def capacity_row(at_us: int, seat: EngineReplica, watch: EngineScraper) -> dict[str, Any]:
    """Return pool, engine and KV capacity; the step model is added separately."""
    sample = watch.sample
    return {
        "at_us": at_us,
        "pool": seat.pool,
        "engine": seat.name,
        "kv_capacity_tokens": None if sample is None else sample.kv_capacity_tokens,
    }


def reason_of(seat: EngineReplica, state: EngineHealth, life: float, *, unmet: bool) -> str:
    """Return the reason of an unhealthy state; empty if the parent process reports it."""
    if seat.managed and not life:
        return ""
    if unmet:
        return "its step times are not known yet"
    return "" if state.state is HealthState.HEALTHY else state.reason
