"""The own engines as finance and the dashboard see them: contracts, closed hours, samples.

Contracts, capacity and catalog are versioned: rows are added, the latest at a time is in force.
Ratios are parts per million, rates are per second.
"""

from datetime import date

from sqlalchemy import BigInteger, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from ledger.orm.types import Json, LedgerBase, Serial

HOUR_US = 3_600_000_000


class GpuContractRow(LedgerBase):
    """What a pool's hardware costs. `pusd_per_hour` is for one GPU; `None` is unknown, never 0.

    Pools on one `machine` share its rate: each contract holds its own exact part of it, and the
    parts add up to the machine's rate.
    """

    __tablename__ = "gpu_contracts"
    __table_args__ = (Index(None, "pool", "recorded_us"),)

    id: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    pool: Mapped[str]
    gpu_type: Mapped[str]
    gpus_per_replica: Mapped[int]
    replicas: Mapped[int]
    billing: Mapped[str]  # reserved | on_demand | owned
    pusd_per_hour: Mapped[int | None] = mapped_column(BigInteger)
    source: Mapped[str | None]
    since: Mapped[date | None]
    until: Mapped[date | None]  # inclusive
    ops_seconds_per_week: Mapped[int] = mapped_column(default=0)
    ops_pusd_per_hour: Mapped[int] = mapped_column(BigInteger, default=0)
    simulated: Mapped[bool] = mapped_column(default=False)
    recorded_us: Mapped[int] = mapped_column(BigInteger)
    machine: Mapped[str | None]  # None: the pool's own
    share_ppm: Mapped[int] = mapped_column(default=1_000_000)  # of the machine


class GpuHourRow(LedgerBase):
    """A closed hour of a pool: used + idle + unavailable = bill. Per team: see the postings.

    Rows are never edited. A settle that comes after the close adds a row of differences, numbered
    by `correction` (the close itself is 0): every sum over the rows of an hour is right.
    """

    __tablename__ = "gpu_hours"

    pool: Mapped[str] = mapped_column(primary_key=True)
    hour_us: Mapped[int] = mapped_column(BigInteger, primary_key=True)  # its start
    correction: Mapped[int] = mapped_column(primary_key=True, default=0)
    contract_id: Mapped[int] = mapped_column(BigInteger)
    replicas: Mapped[int]  # 0 in a correction, as `span_us`
    span_us: Mapped[int] = mapped_column(BigInteger, default=HOUR_US)  # what of the hour is billed
    bill_pusd: Mapped[int] = mapped_column(BigInteger)
    used_pusd: Mapped[int] = mapped_column(BigInteger)
    idle_pusd: Mapped[int] = mapped_column(BigInteger)
    unavailable_pusd: Mapped[int] = mapped_column(BigInteger)
    busy_us: Mapped[int] = mapped_column(BigInteger)  # of replicas x span_us
    unavailable_us: Mapped[int] = mapped_column(BigInteger)
    closed_us: Mapped[int] = mapped_column(BigInteger)


class GpuHourTeamRow(LedgerBase):
    """One team's share of a closed hour: provisional charges plus the adjustment posted."""

    __tablename__ = "gpu_hour_teams"

    pool: Mapped[str] = mapped_column(primary_key=True)
    hour_us: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    team_id: Mapped[str] = mapped_column(primary_key=True)
    correction: Mapped[int] = mapped_column(primary_key=True, default=0)
    used_pusd: Mapped[int] = mapped_column(BigInteger)
    provisional_pusd: Mapped[int] = mapped_column(BigInteger)
    engine_us: Mapped[int] = mapped_column(BigInteger)


class EngineSampleRow(LedgerBase):
    """One engine's state every ten seconds; totals are the engine's own counters."""

    __tablename__ = "engine_samples"
    __table_args__ = (UniqueConstraint("engine", "at_us"), Index(None, "pool", "at_us"))

    seq: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    at_us: Mapped[int] = mapped_column(BigInteger, index=True)
    pool: Mapped[str]
    engine: Mapped[str]
    health: Mapped[str]
    running: Mapped[int | None]
    waiting: Mapped[int | None]
    kv_usage_ppm: Mapped[int | None]
    kv_promised_ppm: Mapped[int | None]
    prompt_tokens_total: Mapped[int | None] = mapped_column(BigInteger)
    output_tokens_total: Mapped[int | None] = mapped_column(BigInteger)
    preemptions_total: Mapped[int | None] = mapped_column(BigInteger)
    prefix_hit_ppm: Mapped[int | None]
    busy_us: Mapped[int | None] = mapped_column(BigInteger)  # of the interval before `at_us`
    step_feedback_ppm: Mapped[int | None]
    load_ppm: Mapped[int | None]  # z, the worst ratio to a limit
    bid_price_pusd_per_s: Mapped[int | None] = mapped_column(BigInteger)
    age_us: Mapped[int | None] = mapped_column(BigInteger)  # of the last good scrape
    simulated: Mapped[bool] = mapped_column(default=False)


class RoundTripRow(LedgerBase):
    """The round trip to an engine, from then on: a row where it changed."""

    __tablename__ = "round_trips"

    engine: Mapped[str] = mapped_column(primary_key=True)
    at_us: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    rtt_us: Mapped[int] = mapped_column(BigInteger)


class EngineSampleHourRow(LedgerBase):
    """Of one engine's samples in an hour that is over: the last, and the highest KV usage."""

    __tablename__ = "engine_sample_hours"

    hour_us: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    engine: Mapped[str] = mapped_column(primary_key=True)
    last_seq: Mapped[int] = mapped_column(BigInteger)
    kv_usage_ppm: Mapped[int | None]


class EngineCapacityRow(LedgerBase):
    """What was measured of an engine, and the promises it serves under; `source` says how."""

    __tablename__ = "capacity"
    __table_args__ = (Index(None, "pool", "at_us"),)

    id: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    at_us: Mapped[int] = mapped_column(BigInteger)
    pool: Mapped[str]
    engine: Mapped[str]
    kv_capacity_tokens: Mapped[int | None]
    slo_ttft_ms: Mapped[float | None]
    slo_tpot_ms: Mapped[float | None]
    step_a_s: Mapped[float | None]
    step_b_s: Mapped[float | None]
    step_c_s: Mapped[float | None]
    step_d_s: Mapped[float | None]
    step_t0_s: Mapped[float | None]
    source: Mapped[str]


class CatalogEntryRow(LedgerBase):
    """What runs: engine kind, version, model, flags and limits, as probed."""

    __tablename__ = "catalog"
    __table_args__ = (Index(None, "pool", "at_us"),)

    id: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    at_us: Mapped[int] = mapped_column(BigInteger)
    pool: Mapped[str]
    engine: Mapped[str]
    kind: Mapped[str]  # vllm | simulated
    version: Mapped[str | None]
    model: Mapped[str]
    gpu_type: Mapped[str | None]
    flags: Mapped[list[str] | None] = mapped_column(Json)
    context_tokens: Mapped[int | None]
    max_num_seqs: Mapped[int | None]
    prefill_budget_tokens: Mapped[int | None]
    kv_block_tokens: Mapped[int | None]
    simulated: Mapped[bool] = mapped_column(default=False)
