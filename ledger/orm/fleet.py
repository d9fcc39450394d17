"""Own engines for finance and the dashboard: contracts, closed hours, samples.

Contracts, capacity and catalogue are versioned: rows are added, and the latest at a time is in
force. Ratios are parts per million, rates are per second.
"""

from datetime import date

from sqlalchemy import BigInteger, Index, UniqueConstraint

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Json, Serial

HOUR_US = 3_600_000_000


class GpuContractRow(LedgerBase):
    """The cost of a pool's hardware. `pusd_per_hour` is per GPU; null is unknown, never 0.

    Pools on one `machine` share its rate: each contract has its exact part, and the parts add up to
    the machine's rate.
    """

    __tablename__ = "gpu_contracts"
    __table_args__ = (Index(None, "pool", "recorded_us"),)

    id: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    pool: Stored[str]
    gpu_type: Stored[str]
    gpus_per_replica: Stored[int]
    replicas: Stored[int]
    billing: Stored[str]  # reserved | on_demand | owned
    pusd_per_hour: Stored[int | None] = define_column(BigInteger)
    source: Stored[str | None]
    since: Stored[date | None]
    until: Stored[date | None]  # inclusive
    ops_seconds_per_week: Stored[int] = define_column(default=0)
    ops_pusd_per_hour: Stored[int] = define_column(BigInteger, default=0)
    simulated: Stored[bool] = define_column(default=False)
    recorded_us: Stored[int] = define_column(BigInteger)
    machine: Stored[str | None]  # null: the pool's own
    share_ppm: Stored[int] = define_column(default=1_000_000)  # share of the machine


class GpuHourRow(LedgerBase):
    """A closed hour of a pool: used + idle + unavailable = bill.

    Rows are never edited. A settle after the close adds a row of differences, numbered by
    `correction` (the close itself is 0), so the sum of an hour's rows is always right.
    `GpuHourTeamRow` has the teams.
    """

    __tablename__ = "gpu_hours"

    pool: Stored[str] = define_column(primary_key=True)
    hour_us: Stored[int] = define_column(BigInteger, primary_key=True)  # its start
    correction: Stored[int] = define_column(primary_key=True, default=0)
    contract_id: Stored[int] = define_column(BigInteger)
    replicas: Stored[int]  # 0 in a correction, as `span_us`
    span_us: Stored[int] = define_column(BigInteger, default=HOUR_US)  # billed part of the hour
    bill_pusd: Stored[int] = define_column(BigInteger)
    used_pusd: Stored[int] = define_column(BigInteger)
    idle_pusd: Stored[int] = define_column(BigInteger)
    unavailable_pusd: Stored[int] = define_column(BigInteger)
    busy_us: Stored[int] = define_column(BigInteger)  # of replicas x span_us
    unavailable_us: Stored[int] = define_column(BigInteger)
    closed_us: Stored[int] = define_column(BigInteger)


class GpuHourTeamRow(LedgerBase):
    """One team's share of a closed hour: provisional charges plus the posted adjustment."""

    __tablename__ = "gpu_hour_teams"

    pool: Stored[str] = define_column(primary_key=True)
    hour_us: Stored[int] = define_column(BigInteger, primary_key=True)
    team_id: Stored[str] = define_column(primary_key=True)
    correction: Stored[int] = define_column(primary_key=True, default=0)
    used_pusd: Stored[int] = define_column(BigInteger)
    provisional_pusd: Stored[int] = define_column(BigInteger)
    engine_us: Stored[int] = define_column(BigInteger)


class EngineSampleRow(LedgerBase):
    """The state of one engine every ten seconds. Totals are the engine's own counters."""

    __tablename__ = "engine_samples"
    __table_args__ = (UniqueConstraint("engine", "at_us"), Index(None, "pool", "at_us"))

    seq: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    at_us: Stored[int] = define_column(BigInteger, index=True)
    pool: Stored[str]
    engine: Stored[str]
    health: Stored[str]
    running: Stored[int | None]
    waiting: Stored[int | None]
    kv_usage_ppm: Stored[int | None]
    kv_promised_ppm: Stored[int | None]
    prompt_tokens_total: Stored[int | None] = define_column(BigInteger)
    output_tokens_total: Stored[int | None] = define_column(BigInteger)
    preemptions_total: Stored[int | None] = define_column(BigInteger)
    prefix_hit_ppm: Stored[int | None]
    busy_us: Stored[int | None] = define_column(BigInteger)  # of the interval before `at_us`
    step_feedback_ppm: Stored[int | None]
    load_ppm: Stored[int | None]  # z, the worst ratio to a limit
    bid_price_pusd_per_s: Stored[int | None] = define_column(BigInteger)
    age_us: Stored[int | None] = define_column(BigInteger)  # of the last good scrape
    simulated: Stored[bool] = define_column(default=False)


class RoundTripRow(LedgerBase):
    """The round-trip time to an engine from `at_us` on. Rows are added after changes."""

    __tablename__ = "round_trips"

    engine: Stored[str] = define_column(primary_key=True)
    at_us: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    rtt_us: Stored[int] = define_column(BigInteger)


class EngineSampleHourRow(LedgerBase):
    """One engine's samples of a past hour: the last one, and the highest KV usage."""

    __tablename__ = "engine_sample_hours"

    hour_us: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    engine: Stored[str] = define_column(primary_key=True)
    last_seq: Stored[int] = define_column(BigInteger)
    kv_usage_ppm: Stored[int | None]


class EngineCapacityRow(LedgerBase):
    """The measurements of an engine and its SLO. `source` is how they were measured."""

    __tablename__ = "capacity"
    __table_args__ = (Index(None, "pool", "at_us"),)

    id: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    at_us: Stored[int] = define_column(BigInteger)
    pool: Stored[str]
    engine: Stored[str]
    kv_capacity_tokens: Stored[int | None]
    slo_ttft_ms: Stored[float | None]
    slo_tpot_ms: Stored[float | None]
    step_a_s: Stored[float | None]
    step_b_s: Stored[float | None]
    step_c_s: Stored[float | None]
    step_d_s: Stored[float | None]
    step_t0_s: Stored[float | None]
    source: Stored[str]


class CatalogEntryRow(LedgerBase):
    """The probed state of an engine: kind, version, model, flags and limits."""

    __tablename__ = "catalog"
    __table_args__ = (Index(None, "pool", "at_us"),)

    id: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    at_us: Stored[int] = define_column(BigInteger)
    pool: Stored[str]
    engine: Stored[str]
    kind: Stored[str]  # vllm | simulated
    version: Stored[str | None]
    model: Stored[str]
    gpu_type: Stored[str | None]
    flags: Stored[list[str] | None] = define_column(Json)
    context_tokens: Stored[int | None]
    max_num_seqs: Stored[int | None]
    prefill_budget_tokens: Stored[int | None]
    kv_block_tokens: Stored[int | None]
    simulated: Stored[bool] = define_column(default=False)


class ModelRouteRow(LedgerBase):
    """The APIs that may serve a model besides own engines, as configured.

    `apis` has one document per API (`model_routes.RouteApi`). `residency` is `any`,
    `internal_only`, or `depends` if a rule with conditions keeps some of its requests inside.
    """

    __tablename__ = "model_routes"

    model: Stored[str] = define_column(primary_key=True)
    residency: Stored[str]
    apis: Stored[list[dict[str, object]]] = define_column(Json)
    recorded_us: Stored[int] = define_column(BigInteger)
