"""Reads of own engines: contracts, closed hours, capacity, samples.

A pool's bill comes from its closed hours; `running` has the time since the last closed hour.
Samples are thinned in SQL, so that a month of samples fits a chart.
"""

from dataclasses import dataclass, replace

from sqlalchemy import Connection, and_, case, func, select, tuple_

from ledger.database import in_groups
from ledger.fleet.pool_records import CapacityRow, ContractVersion, HourCell
from ledger.fleet.samples import FleetSample
from ledger.orm.base import aliased
from ledger.orm.tables import (
    CatalogEntryRow,
    EngineCapacityRow,
    EngineSampleHourRow,
    EngineSampleRow,
    GpuContractRow,
    GpuHourRow,
    GpuHourTeamRow,
    RoundTripRow,
    exact_sum,
)
from ledger.spans import HOUR_US, Scope, rows, total
from ledger.sums.samplehours import packed_until_us

SAMPLES_LIMIT = 20_000
SAMPLES_US = 10_000_000  # how far apart an engine's samples are
SAMPLES_IN_CHART = 360


@dataclass(frozen=True, slots=True)
class TeamCell:
    """One team's share of the closed hours of one pool in one bucket."""

    pool: str
    start_us: int
    team: str
    used_pusd: int


_ENGINE_COLUMNS = tuple(getattr(EngineSampleRow, name) for name in FleetSample.__dataclass_fields__)


_CONTRACTS = select(
    GpuContractRow.pool,
    GpuContractRow.gpu_type,
    GpuContractRow.gpus_per_replica * GpuContractRow.replicas,
    GpuContractRow.replicas,
    GpuContractRow.billing,
    GpuContractRow.pusd_per_hour,
    GpuContractRow.source,
    GpuContractRow.since,
    GpuContractRow.until,
    GpuContractRow.ops_seconds_per_week,
    GpuContractRow.ops_pusd_per_hour,
    GpuContractRow.simulated,
    GpuContractRow.recorded_us,
    GpuContractRow.machine,
    GpuContractRow.share_ppm,
).order_by(GpuContractRow.pool, GpuContractRow.id)


def contracts(connection: Connection) -> list[ContractVersion]:
    """Return the active version of every pool's contract: the latest recorded."""
    latest = select(func.max(GpuContractRow.id)).group_by(GpuContractRow.pool)
    statement = _CONTRACTS.where(GpuContractRow.id.in_(latest))
    return [ContractVersion(*row) for row in rows(connection, statement)]


def contract_versions(connection: Connection) -> list[ContractVersion]:
    """Return the contract versions of every pool, oldest first."""
    return [ContractVersion(*row) for row in rows(connection, _CONTRACTS)]


def hours(connection: Connection, scope: Scope, *, bucket_us: int) -> list[HourCell]:
    """Return closed hours that start in the scope, by pool and bucket (an hour or longer)."""
    width = max(bucket_us, HOUR_US)
    start = (GpuHourRow.hour_us - GpuHourRow.hour_us % width).label("start_us")
    statement = (
        select(
            GpuHourRow.pool,
            start,
            total(case((GpuHourRow.correction == 0, 1), else_=0)),
            exact_sum(GpuHourRow.span_us),
            exact_sum(GpuHourRow.bill_pusd),
            exact_sum(GpuHourRow.used_pusd),
            exact_sum(GpuHourRow.idle_pusd),
            exact_sum(GpuHourRow.unavailable_pusd),
            exact_sum(GpuHourRow.busy_us),
            exact_sum(GpuHourRow.unavailable_us),
            exact_sum(GpuHourRow.replicas * GpuHourRow.span_us),
            func.max(GpuHourRow.hour_us),
        )
        .where(GpuHourRow.hour_us >= scope.start_us, GpuHourRow.hour_us < scope.end_us)
        .group_by(GpuHourRow.pool, "start_us")
        .order_by(GpuHourRow.pool, "start_us")
    )
    return [HourCell(*row) for row in rows(connection, statement)]


def hours_by_team(connection: Connection, scope: Scope, *, bucket_us: int) -> list[TeamCell]:
    width = max(bucket_us, HOUR_US)
    start = (GpuHourTeamRow.hour_us - GpuHourTeamRow.hour_us % width).label("start_us")
    statement = (
        select(
            GpuHourTeamRow.pool, start, GpuHourTeamRow.team_id, exact_sum(GpuHourTeamRow.used_pusd)
        )
        .where(
            # The index begins with the pool: with named pools, a span is an index lookup.
            GpuHourTeamRow.pool.in_(select(GpuHourRow.pool).distinct()),
            GpuHourTeamRow.hour_us >= scope.start_us,
            GpuHourTeamRow.hour_us < scope.end_us,
        )
        .group_by(GpuHourTeamRow.pool, "start_us", GpuHourTeamRow.team_id)
        .order_by(GpuHourTeamRow.pool, "start_us", GpuHourTeamRow.team_id)
    )
    if scope.team is not None:
        statement = statement.where(GpuHourTeamRow.team_id == scope.team)
    return [TeamCell(*row) for row in rows(connection, statement)]


def capacities(connection: Connection) -> list[CapacityRow]:
    """Return the latest capacity of every engine, with the limits of its last start."""
    latest = select(func.max(EngineCapacityRow.id)).group_by(EngineCapacityRow.engine)
    limits = select(func.max(CatalogEntryRow.id)).group_by(CatalogEntryRow.engine)
    stated = ("max_num_seqs", "context_tokens", "prefill_budget_tokens")
    names = [name for name in CapacityRow.__dataclass_fields__ if name not in stated]
    started = and_(
        CatalogEntryRow.engine == EngineCapacityRow.engine, CatalogEntryRow.id.in_(limits)
    )
    statement = (
        select(
            *(getattr(EngineCapacityRow, name) for name in names),
            *(getattr(CatalogEntryRow, name) for name in stated),
        )
        .outerjoin(CatalogEntryRow, started)
        .where(EngineCapacityRow.id.in_(latest))
        .order_by(EngineCapacityRow.engine)
    )
    return [CapacityRow(*row) for row in rows(connection, statement)]


def engines_now(connection: Connection) -> list[FleetSample]:
    """Return the latest sample of every engine, by index lookups among millions of rows."""
    sample, later = aliased(EngineSampleRow), aliased(EngineSampleRow)
    names = select(func.min(EngineSampleRow.engine).label("engine")).cte("names", recursive=True)
    following = select(func.min(later.engine)).where(later.engine > names.c.engine)
    names = names.union_all(select(following.scalar_subquery()).where(names.c.engine.is_not(None)))
    latest = select(func.max(sample.at_us)).where(sample.engine == names.c.engine)
    places = connection.execute(
        select(names.c.engine, latest.scalar_subquery()).where(names.c.engine.is_not(None))
    ).all()
    here = tuple_(EngineSampleRow.engine, EngineSampleRow.at_us).in_(
        [tuple(place) for place in places]
    )
    statement = select(*_ENGINE_COLUMNS).where(here).order_by(EngineSampleRow.engine)
    return [FleetSample(*row) for row in rows(connection, statement)]


def first_sample_us(connection: Connection, scope: Scope) -> int | None:
    statement = select(func.min(EngineSampleRow.at_us)).where(
        EngineSampleRow.at_us >= scope.start_us, EngineSampleRow.at_us < scope.end_us
    )
    return connection.execute(statement).scalar_one_or_none()


def samples_bucket_us(span_us: int) -> int:
    """Return the bucket width for a chart of samples: 360 points, or whole hours if longer."""
    bucket_us = max(1, -(-span_us // (SAMPLES_IN_CHART * SAMPLES_US))) * SAMPLES_US
    return bucket_us if bucket_us <= HOUR_US else -(-bucket_us // HOUR_US) * HOUR_US


def engine_samples(connection: Connection, scope: Scope, *, bucket_us: int) -> list[FleetSample]:
    """Return the last sample of each engine and bucket, with the bucket's highest KV usage.

    Buckets of whole hours are read from packed hours as far as these exist.
    """
    first = last = scope.start_us
    if bucket_us % HOUR_US == 0:
        first = -(-scope.start_us // HOUR_US) * HOUR_US
        last = max(first, min(packed_until_us(connection), scope.end_us // HOUR_US * HOUR_US))
    ends: dict[tuple[str, int], tuple[int, int | None]] = {}
    table, hours = EngineSampleRow, EngineSampleHourRow
    samples = (table.engine, table.at_us, table.seq, table.kv_usage_ppm)
    packed = (hours.engine, hours.hour_us, hours.last_seq, hours.kv_usage_ppm)
    for (name, time, seq, kv), since_us, until_us in (
        (samples, scope.start_us, min(first, scope.end_us)),
        (packed, first, last),
        (samples, last, scope.end_us),
    ):
        if since_us >= until_us:
            continue
        bucket = (time - time % bucket_us).label("bucket_us")
        statement = (
            select(name, bucket, func.max(seq), func.max(kv))
            .where(time >= since_us, time < until_us)
            .group_by(name, "bucket_us")
        )
        for engine, start_us, number, peak in rows(connection, statement):
            known, high = ends.get((engine, start_us), (0, None))
            both = [item for item in (high, peak) if item is not None]
            ends[engine, start_us] = (max(known, number), max(both, default=None))
    peaks = dict(ends.values())
    found: list[FleetSample] = []
    for some in in_groups(list(peaks)):  # looked up: a join would read them all
        statement = select(EngineSampleRow.seq, *_ENGINE_COLUMNS).where(
            EngineSampleRow.seq.in_(some)
        )
        found += [
            replace(FleetSample(*row), kv_usage_ppm=peaks[seq])
            for seq, *row in rows(connection, statement)
        ]
    return sorted(found, key=lambda row: (row.at_us, row.engine))[:SAMPLES_LIMIT]


def round_trips(connection: Connection) -> dict[str, int]:
    """Return the last measured round trip to each engine, in microseconds."""
    newest = select(RoundTripRow.engine, func.max(RoundTripRow.at_us)).group_by(RoundTripRow.engine)
    query = select(RoundTripRow.engine, RoundTripRow.rtt_us).where(
        tuple_(RoundTripRow.engine, RoundTripRow.at_us).in_(newest)
    )
    return {row.engine: row.rtt_us for row in connection.execute(query)}
