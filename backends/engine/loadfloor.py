"""The least cost of serving a number of users, by the same physics as a plan's floors.

A request is its prefill at full compute and its share of decode steps, each of which reads the
weights once and every user's KV cache at its mean length. Nothing else is counted: no attention
arithmetic, no launches, no gaps; and nothing overlaps, though chunked prefill does, a little.
"""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class UserLoad:
    """Simultaneous users, tokens of each request, and the rate of all GPUs together."""

    users: int
    prompt_tokens: int = 512
    output_tokens: int = 256
    usd_per_hour: Decimal | None = None


@dataclass(frozen=True, slots=True)
class CostFloor:
    """Seconds, tokens per second, USD per million tokens on both bases."""

    step_s: float
    request_s: float
    tokens_s: float
    output_tokens_s: float
    usd_per_million: float | None
    usd_per_million_output: float | None


def load_floor(
    load: UserLoad, *, prefill_s: float, weight_bytes: float, kv_bytes: float, bandwidth: float
) -> CostFloor:
    """Return the floor; `prefill_s` a prompt, `kv_bytes` a token, `bandwidth` in bytes/s."""
    context = load.prompt_tokens + load.output_tokens / 2
    step_s = (weight_bytes + load.users * context * kv_bytes) / bandwidth
    request_s = prefill_s + load.output_tokens * step_s / load.users
    output = load.output_tokens / request_s
    both = (load.prompt_tokens + load.output_tokens) / request_s
    hourly = None if load.usd_per_hour is None else float(load.usd_per_hour) * 1e6 / 3600
    return CostFloor(
        step_s,
        request_s,
        both,
        output,
        None if hourly is None else hourly / both,
        None if hourly is None else hourly / output,
    )
