"""Packed hours of engine samples, read by charts of a month instead of millions of rows.

    while pack_hours(engine, at_us=...):
        pass

A packed hour keeps each engine's last sample and its highest KV usage, which are all that a chart
with buckets of whole hours needs. One statement makes a packed hour from samples, so repeating it
gives equal rows. Telemetry writes no sample for an hour long past, and `verify` finds later ones.
If two hosts pack at once, one of them gives up.
"""

from collections.abc import Generator
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, Select, func, insert, select
from sqlalchemy.exc import IntegrityError

from ledger.database import reading
from ledger.orm.fleet import HOUR_US, EngineSampleHourRow, EngineSampleRow

GRACE_US = 600_000_000  # samples of an hour may be in the database a little later
HOURS_AT_ONCE = 24
_HOUR: ColumnElement[int] = EngineSampleRow.at_us - EngineSampleRow.at_us % HOUR_US


def pack_hours(engine: Engine, *, at_us: int) -> int:
    """Pack some past hours, oldest first. Return the number of rows; repeat until it is 0."""
    until_us = (at_us - GRACE_US) // HOUR_US * HOUR_US
    with reading(engine) as connection:
        first_us = connection.execute(
            select(func.min(EngineSampleRow.at_us)).where(
                EngineSampleRow.at_us >= packed_until_us(connection),
                EngineSampleRow.at_us < until_us,
            )
        ).scalar_one_or_none()
        if first_us is None:
            return 0
        start_us = first_us - first_us % HOUR_US
        query = _of_samples(start_us, min(until_us, start_us + HOURS_AT_ONCE * HOUR_US))
        rows = [dict(row) for row in connection.execute(query).mappings()]
    try:
        with engine.begin() as connection:
            connection.execute(insert(EngineSampleHourRow), rows)
    except IntegrityError:
        return 0
    return len(rows)


def packed_until_us(connection: Connection) -> int:
    """Return the time before which all samples are in packed hours, 0 if none is packed."""
    last = connection.execute(select(func.max(EngineSampleHourRow.hour_us))).scalar()
    return 0 if last is None else int(last) + HOUR_US


def hours_are_the_samples(connection: Connection) -> Generator[tuple[str, str], None, None]:
    """Check for `verify` that a packed hour equals its samples."""
    names = ("hour_us", "engine", "last_seq", "kv_usage_ppm")
    query = select(*(getattr(EngineSampleHourRow, name) for name in names))
    stored = {row[:2]: row[2:] for row in map(tuple, connection.execute(query))}
    until_us = packed_until_us(connection)
    if until_us:
        for hour_us, engine, *said in connection.execute(_of_samples(0, until_us)):
            if stored.pop((hour_us, engine), None) != tuple(said):
                yield f"engine_sample_hours {engine} {hour_us}", "it is not what its samples say"
    for hour_us, engine in stored:
        yield f"engine_sample_hours {engine} {hour_us}", "no sample is behind it"


def _of_samples(start_us: int, end_us: int) -> Select[*tuple[Any, ...]]:
    return (
        select(
            _HOUR.label("hour_us"),
            EngineSampleRow.engine,
            func.max(EngineSampleRow.seq).label("last_seq"),
            func.max(EngineSampleRow.kv_usage_ppm).label("kv_usage_ppm"),
        )
        .where(EngineSampleRow.at_us >= start_us, EngineSampleRow.at_us < end_us)
        .group_by("hour_us", EngineSampleRow.engine)
    )
