"""External APIs in a replay: lognormal latency drawn per request, equal for all policies."""

import random
from dataclasses import dataclass

from backends.simulator.latency import Latency


@dataclass(frozen=True, slots=True)
class ApiLatency:
    """Latency of one API answer: seconds to the first token, seconds per further token."""

    ttft_s: float
    tpot_s: float


def draw_latencies(count: int, latency: Latency, seed: int) -> list[ApiLatency]:
    """Return a latency for each request, whether used or not, so that policies are comparable."""
    rng = random.Random(seed)  # noqa: S311  (a simulation)
    return [ApiLatency(*latency.draw(rng)) for _ in range(count)]
