"""Telemetry's rows for the dashboard: engine samples, capacity and catalogue versions.

These are small transactions, separate from the ledger writer. Capacity and catalogue rows are added
only after a change: the latest row at a time is in force.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine, insert, select

from ledger.database import read_rows
from ledger.orm import tables as orm

PPM = 1_000_000


@dataclass(frozen=True, slots=True)
class FleetSample:
    """One engine at one time; totals are the engine's own counters.

    Ratios are in parts per million; `None` is unknown.
    """

    at_us: int
    pool: str
    engine: str
    health: str
    running: int | None = None
    waiting: int | None = None
    kv_usage_ppm: int | None = None
    kv_promised_ppm: int | None = None
    prompt_tokens_total: int | None = None
    output_tokens_total: int | None = None
    preemptions_total: int | None = None
    prefix_hit_ppm: int | None = None
    busy_us: int | None = None
    step_feedback_ppm: int | None = None  # observed relative to modelled step times
    load_ppm: int | None = None
    bid_price_pusd_per_s: int | None = None
    age_us: int | None = None
    simulated: bool = False


def add_round_trips(engine: Engine, at_us: int, rtt_us: Mapping[str, int]) -> None:
    """Add round-trip times of engines, in microseconds."""
    if rtt_us:
        rows = [
            {"engine": name, "at_us": at_us, "rtt_us": number} for name, number in rtt_us.items()
        ]
        with engine.begin() as connection:
            connection.execute(insert(orm.RoundTripRow), rows)


def add_samples(engine: Engine, samples: Sequence[FleetSample]) -> None:
    """Append samples in one transaction."""
    if samples:
        with engine.begin() as connection:
            connection.execute(insert(orm.EngineSampleRow), [asdict(sample) for sample in samples])


def readings(
    engine: Engine, name: str, from_us: int, until_us: int
) -> list[tuple[int, int, int, int]]:
    """Return (time, running, prompt tokens, output tokens) of an engine, complete rows only."""
    table = orm.EngineSampleRow
    columns = (table.at_us, table.running, table.prompt_tokens_total, table.output_tokens_total)
    query = (
        select(*columns)
        .where(table.engine == name, table.at_us >= from_us, table.at_us < until_us)
        .order_by(table.at_us)
    )
    found = read_rows(engine, query)
    return [
        (at_us, running, read, written)
        for at_us, running, read, written in found
        if running is not None and read is not None and written is not None
    ]


def add_capacity(engine: Engine, row: Mapping[str, Any]) -> bool:
    """Add an engine's capacity if it differs from the latest row. Return whether it did."""
    return _add_version(engine, orm.EngineCapacityRow, row)


def add_catalog(engine: Engine, row: Mapping[str, Any]) -> bool:
    """Add what an engine runs if it differs from the latest row. Return whether it did."""
    return _add_version(engine, orm.CatalogEntryRow, row)


def _add_version(engine: Engine, table: Any, row: Mapping[str, Any]) -> bool:
    columns = [column for column in table.__table__.columns if column.name not in ("id", "at_us")]
    query = (
        select(*columns)
        .where(table.engine == row["engine"])
        .order_by(table.at_us.desc(), table.id.desc())
        .limit(1)
    )
    with engine.begin() as connection:
        latest = connection.execute(query).mappings().first()
        if latest is not None and all(latest[name] == row.get(name) for name in latest):
            return False
        connection.execute(insert(table), [dict(row)])
        return True
