"""Reads of the own engines: contracts, closed hours, capacity, samples.

A pool's bill comes from its closed hours; what runs since the last closed hour is in
`running`. Samples are thinned in SQL, so that a month of them fits a chart.
"""

from dataclasses import dataclass, replace

from sqlalchemy import Connection, and_, case, func, select, tuple_
from sqlalchemy.orm import aliased

from ledger.fleet.pool_records import CapacityRow, ContractVersion, HourCell
from ledger.orm.tables import (
    Capacity,
    CatalogEntry,
    EngineSample,
    EngineSampleHour,
    GpuContract,
    GpuHour,
    GpuHourTeam,
    RoundTrip,
    exact_sum,
)
from ledger.spans import HOUR_US, Scope, rows, total
from ledger.sums.samplehours import packed_until_us

SAMPLES_LIMIT = 20_000
NAMED_AT_ONCE = 500
SAMPLES_US = 10_000_000  # how far apart an engine's samples are
SAMPLES_IN_CHART = 360


@dataclass(frozen=True, slots=True)
class TeamCell:
    """One team's share of the closed hours of one pool in one bucket."""

    pool: str
    start_us: int
    team: str
    used_pusd: int


@dataclass(frozen=True, slots=True)
class EngineRow:
    """One engine at one instant; totals are its own counters."""

    at_us: int
    pool: str
    engine: str
    health: str
    running: int | None
    waiting: int | None
    kv_usage_ppm: int | None
    kv_promised_ppm: int | None
    prompt_tokens_total: int | None
    output_tokens_total: int | None
    preemptions_total: int | None
    prefix_hit_ppm: int | None
    busy_us: int | None
    load_ppm: int | None
    age_us: int | None
    simulated: bool
    step_feedback_ppm: int | None = None  # observed step times beside their model's
    bid_price_pusd_per_s: int | None = None


_ENGINE_COLUMNS = tuple(getattr(EngineSample, name) for name in EngineRow.__dataclass_fields__)


_CONTRACTS = select(
    GpuContract.pool,
    GpuContract.gpu_type,
    GpuContract.gpus_per_replica * GpuContract.replicas,
    GpuContract.replicas,
    GpuContract.billing,
    GpuContract.pusd_per_hour,
    GpuContract.source,
    GpuContract.since,
    GpuContract.until,
    GpuContract.ops_seconds_per_week,
    GpuContract.ops_pusd_per_hour,
    GpuContract.simulated,
    GpuContract.recorded_us,
    GpuContract.machine,
    GpuContract.share_ppm,
).order_by(GpuContract.pool, GpuContract.id)


def contracts(connection: Connection) -> list[ContractVersion]:
    """The version in force of every pool: the latest recorded."""
    latest = select(func.max(GpuContract.id)).group_by(GpuContract.pool)
    statement = _CONTRACTS.where(GpuContract.id.in_(latest))
    return [ContractVersion(*row) for row in rows(connection, statement)]


def contract_versions(connection: Connection) -> list[ContractVersion]:
    """Of every pool, the oldest first."""
    return [ContractVersion(*row) for row in rows(connection, _CONTRACTS)]


def hours(connection: Connection, scope: Scope, *, bucket_us: int) -> list[HourCell]:
    """Closed hours that start in the scope, by pool and bucket (an hour or longer)."""
    width = max(bucket_us, HOUR_US)
    start = (GpuHour.hour_us - GpuHour.hour_us % width).label("start_us")
    statement = (
        select(
            GpuHour.pool,
            start,
            total(case((GpuHour.correction == 0, 1), else_=0)),
            exact_sum(GpuHour.span_us),
            exact_sum(GpuHour.bill_pusd),
            exact_sum(GpuHour.used_pusd),
            exact_sum(GpuHour.idle_pusd),
            exact_sum(GpuHour.unavailable_pusd),
            exact_sum(GpuHour.busy_us),
            exact_sum(GpuHour.unavailable_us),
            exact_sum(GpuHour.replicas * GpuHour.span_us),
            func.max(GpuHour.hour_us),
        )
        .where(GpuHour.hour_us >= scope.start_us, GpuHour.hour_us < scope.end_us)
        .group_by(GpuHour.pool, "start_us")
        .order_by(GpuHour.pool, "start_us")
    )
    return [HourCell(*row) for row in rows(connection, statement)]


def hours_by_team(connection: Connection, scope: Scope, *, bucket_us: int) -> list[TeamCell]:
    width = max(bucket_us, HOUR_US)
    start = (GpuHourTeam.hour_us - GpuHourTeam.hour_us % width).label("start_us")
    statement = (
        select(GpuHourTeam.pool, start, GpuHourTeam.team_id, exact_sum(GpuHourTeam.used_pusd))
        .where(
            # The key begins with the pool: with pools named a span is looked up, not searched for.
            GpuHourTeam.pool.in_(select(GpuHour.pool).distinct()),
            GpuHourTeam.hour_us >= scope.start_us,
            GpuHourTeam.hour_us < scope.end_us,
        )
        .group_by(GpuHourTeam.pool, "start_us", GpuHourTeam.team_id)
        .order_by(GpuHourTeam.pool, "start_us", GpuHourTeam.team_id)
    )
    if scope.team is not None:
        statement = statement.where(GpuHourTeam.team_id == scope.team)
    return [TeamCell(*row) for row in rows(connection, statement)]


def capacities(connection: Connection) -> list[CapacityRow]:
    """The latest row of every engine, with the batch limit that the engine was started with."""
    latest = select(func.max(Capacity.id)).group_by(Capacity.engine)
    limits = select(func.max(CatalogEntry.id)).group_by(CatalogEntry.engine)
    names = [name for name in CapacityRow.__dataclass_fields__ if name != "max_num_seqs"]
    started = and_(CatalogEntry.engine == Capacity.engine, CatalogEntry.id.in_(limits))
    statement = (
        select(*(getattr(Capacity, name) for name in names), CatalogEntry.max_num_seqs)
        .outerjoin(CatalogEntry, started)
        .where(Capacity.id.in_(latest))
        .order_by(Capacity.engine)
    )
    return [CapacityRow(*row) for row in rows(connection, statement)]


def engines_now(connection: Connection) -> list[EngineRow]:
    """The latest sample of every engine; each is looked up, for samples are millions."""
    sample, later = aliased(EngineSample), aliased(EngineSample)
    names = select(func.min(EngineSample.engine).label("engine")).cte("names", recursive=True)
    following = select(func.min(later.engine)).where(later.engine > names.c.engine)
    names = names.union_all(select(following.scalar_subquery()).where(names.c.engine.is_not(None)))
    latest = select(func.max(sample.at_us)).where(sample.engine == names.c.engine)
    places = connection.execute(
        select(names.c.engine, latest.scalar_subquery()).where(names.c.engine.is_not(None))
    ).all()
    here = tuple_(EngineSample.engine, EngineSample.at_us).in_([tuple(one) for one in places])
    statement = select(*_ENGINE_COLUMNS).where(here).order_by(EngineSample.engine)
    return [EngineRow(*row) for row in rows(connection, statement)]


def first_sample_us(connection: Connection, scope: Scope) -> int | None:
    statement = select(func.min(EngineSample.at_us)).where(
        EngineSample.at_us >= scope.start_us, EngineSample.at_us < scope.end_us
    )
    return connection.execute(statement).scalar_one_or_none()


def samples_bucket_us(span_us: int) -> int:
    """How far a chart of so long a span thins samples: 360 points, or whole hours for each."""
    bucket_us = max(1, -(-span_us // (SAMPLES_IN_CHART * SAMPLES_US))) * SAMPLES_US
    return bucket_us if bucket_us <= HOUR_US else -(-bucket_us // HOUR_US) * HOUR_US


def engine_samples(connection: Connection, scope: Scope, *, bucket_us: int) -> list[EngineRow]:
    """The last sample of every engine in every bucket, with the bucket's highest KV usage.

    Buckets of whole hours are read from packed hours, as far as there are any.
    """
    first = last = scope.start_us
    if bucket_us % HOUR_US == 0:
        first = -(-scope.start_us // HOUR_US) * HOUR_US
        last = max(first, min(packed_until_us(connection), scope.end_us // HOUR_US * HOUR_US))
    ends: dict[tuple[str, int], tuple[int, int | None]] = {}
    table, hours = EngineSample, EngineSampleHour
    for time, seq, kv, since_us, until_us in (
        (table.at_us, table.seq, table.kv_usage_ppm, scope.start_us, min(first, scope.end_us)),
        (hours.hour_us, hours.last_seq, hours.kv_usage_ppm, first, last),
        (table.at_us, table.seq, table.kv_usage_ppm, last, scope.end_us),
    ):
        if since_us >= until_us:
            continue
        bucket = (time - time % bucket_us).label("bucket_us")
        statement = (
            select(time.class_.engine, bucket, func.max(seq), func.max(kv))
            .where(time >= since_us, time < until_us)
            .group_by(time.class_.engine, "bucket_us")
        )
        for engine, start_us, number, peak in rows(connection, statement):
            known, high = ends.get((engine, start_us), (0, None))
            both = [one for one in (high, peak) if one is not None]
            ends[engine, start_us] = (max(known, number), max(both, default=None))
    peaks = dict(ends.values())
    found: list[EngineRow] = []
    for place in range(0, len(peaks), NAMED_AT_ONCE):  # looked up: a join would read them all
        some = list(peaks)[place : place + NAMED_AT_ONCE]
        statement = select(EngineSample.seq, *_ENGINE_COLUMNS).where(EngineSample.seq.in_(some))
        found += [
            replace(EngineRow(*row), kv_usage_ppm=peaks[seq])
            for seq, *row in rows(connection, statement)
        ]
    return sorted(found, key=lambda row: (row.at_us, row.engine))[:SAMPLES_LIMIT]


def round_trips(connection: Connection) -> dict[str, int]:
    """To each engine, in microseconds, as it was measured last."""
    newest = select(RoundTrip.engine, func.max(RoundTrip.at_us)).group_by(RoundTrip.engine)
    query = select(RoundTrip.engine, RoundTrip.rtt_us).where(
        tuple_(RoundTrip.engine, RoundTrip.at_us).in_(newest)
    )
    return {row.engine: row.rtt_us for row in connection.execute(query)}
