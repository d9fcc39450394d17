"""External APIs in a replay: lognormal latency drawn once a request, the same for every policy."""

import random
from dataclasses import dataclass

from backends.simulator.latency import Latency


@dataclass(frozen=True, slots=True)
class ApiLatency:
    """An API's latency: seconds to the first token, seconds a token after it."""

    ttft_s: float
    tpot_s: float


def draw_latencies(count: int, latency: Latency, seed: int) -> list[ApiLatency]:
    """An answer to each request, asked for or not, so that policies are comparable."""
    rng = random.Random(seed)  # noqa: S311  (a simulation)
    return [ApiLatency(*latency.draw(rng)) for _ in range(count)]
