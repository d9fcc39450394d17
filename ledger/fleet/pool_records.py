"""A pool's records as the queries read them: contract version, hours, capacity and load.

They are below the queries, so that the arithmetic of `fleet` imports no query.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from ledger.fleet.capacity import EngineLimits


@dataclass(frozen=True, slots=True)
class ContractVersion:
    """A version of a pool's hardware costs. `pusd_per_hour=None` is unknown, never free."""

    pool: str
    gpu_type: str
    gpus: int  # of all replicas
    replicas: int
    billing: str
    pusd_per_hour: int | None
    source: str | None
    since: date | None
    until: date | None
    ops_seconds_per_week: int
    ops_pusd_per_hour: int
    simulated: bool
    recorded_us: int
    machine: str | None = None
    share_ppm: int = 1_000_000  # of the machine's GPUs and rate


@dataclass(frozen=True, slots=True)
class HourCell:
    """Closed hours of one pool in one bucket, with corrections.

    The sums satisfy used + idle + unavailable = bill. `span_us` is the billed time: a pool's first
    hour may start within the hour.
    """

    pool: str
    start_us: int
    hours: int
    span_us: int
    bill_pusd: int
    used_pusd: int
    idle_pusd: int
    unavailable_pusd: int
    busy_us: int
    unavailable_us: int
    replica_us: int
    last_hour_us: int


@dataclass(frozen=True, slots=True)
class CapacityRow:
    """Measured figures of one engine, from which rates follow for given traffic.

    `source` is their source. The last three are limits that the engine was started with, or that
    were stated.
    """

    pool: str
    engine: str
    at_us: int
    kv_capacity_tokens: int | None
    slo_tpot_ms: float | None
    step_a_s: float | None
    step_b_s: float | None
    step_c_s: float | None
    step_d_s: float | None
    step_t0_s: float | None
    source: str
    max_num_seqs: int | None = None
    context_tokens: int | None = None
    prefill_budget_tokens: int | None = None

    @property
    def measured(self) -> EngineLimits | None:
        """Return the engine's limits, `None` without a step-time model or TPOT promise."""
        a, b, c = self.step_a_s, self.step_b_s, self.step_c_s
        d, t0, tpot = self.step_d_s, self.step_t0_s, self.slo_tpot_ms
        if a is None or b is None or c is None or d is None or t0 is None or tpot is None:
            return None
        return EngineLimits(a, b, c, d, t0, tpot / 1e3, self.kv_capacity_tokens, self.max_num_seqs)


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """Demand on a pool by minute from `start_us` on, with zeros for quiet minutes. Tokens.

    `asked` is all that own engines answered plus the spill. `served` is the part of it inside the
    SLO, or without one. `spilled` is the part sent away for lack of capacity. Tokens are on one
    basis. `seen` is the number of minutes with requests; the lists run from the first of them to
    the last.
    """

    start_us: int
    asked: Sequence[int]
    served: Sequence[int]
    spilled: Sequence[int]
    spilled_requests: Sequence[int]
    seen: int
