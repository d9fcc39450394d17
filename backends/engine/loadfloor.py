"""Lower bound of the cost of serving a number of users, by the physics of a plan's floors.

A request takes its prefill at full compute and its share of decode steps. Each step reads the
weights once and every user's KV cache at its mean length. Attention arithmetic, kernel launches and
gaps are not counted. Nothing overlaps, although chunked prefill overlaps a little.
"""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class UserLoad:
    """Load of a number of users. `users` is the number of concurrent requests.

    `usd_per_hour` is the rate of all GPUs together.
    """

    users: int
    prompt_tokens: int = 512
    output_tokens: int = 256
    usd_per_hour: Decimal | None = None


@dataclass(frozen=True, slots=True)
class CostFloor:
    """Cost floor of a load: least seconds, most tokens per second, USD per million tokens.

    `tokens_s` and `usd_per_million` count input and output tokens.
    """

    step_s: float
    request_s: float
    tokens_s: float
    output_tokens_s: float
    usd_per_million: float | None
    usd_per_million_output: float | None


def load_floor(
    load: UserLoad, *, prefill_s: float, weight_bytes: float, kv_bytes: float, bandwidth: float
) -> CostFloor:
    """Return the cost floor of a load.

    `prefill_s` is for one prompt, `kv_bytes` for one token, `bandwidth` in bytes/s.
    """
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
