"""The hourly close: splits each pool's hourly bill into teams' use, idle and unavailable.

Hours accrue by contract, so an hour without requests is closed as well. A pool's first hour is
billed from its first evidence on. Without a rate, hours stay open, because the bill is unknown; a
rate that is stated later closes them. A settle that is booked after its hour was closed leads to a
correction: rows and postings of differences. Nothing is edited. All parts add up exactly.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine, insert, select

from ledger.accounts import close_hour, correction_postings
from ledger.database import reading
from ledger.fleet.accrual import (
    HourSplit,
    Version,
    bill_start_us,
    hours_of,
    last_closed_us,
    paid_engine_us,
    rated_versions,
    split,
    unavailable,
    version_in_force,
)
from ledger.fleet.use import PoolUse, uses
from ledger.orm.books import PostingRow
from ledger.orm.fleet import HOUR_US, GpuContractRow, GpuHourRow, GpuHourTeamRow
from ledger.posting_rows import DatabaseRow, posting_rows

GRACE_US = 120_000_000  # settles of an hour may be booked this much later
HOURS_PER_CALL = 2_000
_GPU_ENTRY = re.compile(r"gpu:(.+?):(\d+)(?::(\d+))?$")


@dataclass(slots=True)
class _ClosedHours:
    hours: list[DatabaseRow] = field(default_factory=list)
    teams: list[DatabaseRow] = field(default_factory=list)
    postings: list[DatabaseRow] = field(default_factory=list)

    def write(self, connection: Connection) -> None:
        for table, rows in (
            (GpuHourRow, self.hours),
            (GpuHourTeamRow, self.teams),
            (PostingRow, self.postings),
        ):
            if rows:
                connection.execute(insert(table), rows)


def close_hours(engine: Engine, *, at_us: int) -> int:
    """Close past hours, oldest first. Return the number; call again until it is 0."""
    until_us = (at_us - GRACE_US) // HOUR_US * HOUR_US
    with reading(engine) as connection:
        pools = sorted(connection.execute(select(GpuContractRow.pool).distinct()).scalars())
    closed = 0
    for pool in pools:
        with engine.begin() as connection:
            closed += _close_pool(connection, pool, until_us, at_us)
    return closed


def correct_hours(
    connection: Connection, settled: Iterable[tuple[str, int]], *, at_us: int
) -> None:
    """Correct the closed hours of settles, given as (pool, time), that were just written.

    Call this in the transaction that wrote them, so that no reader sees one without the other.
    """
    touched: dict[str, set[int]] = {}
    for pool, settled_us in settled:
        touched.setdefault(pool, set()).add(settled_us // HOUR_US * HOUR_US)
    for pool, hours in sorted(touched.items()):
        if min(hours) + HOUR_US <= at_us:  # a past hour may be being closed at this moment
            rated_versions(connection, pool, lock=True)
        last = last_closed_us(connection, pool)
        for hour_us in sorted(hours):
            if last is not None and hour_us <= last:
                _correct(connection, pool, hour_us, at_us)


def gpu_entry(pool: str, hour_us: int, correction: int = 0) -> str:
    """Return the entry id of an hour's close, or of its nth correction."""
    return f"gpu:{pool}:{hour_us}" + (f":{correction}" if correction else "")


def hour_of(entry: str) -> tuple[str, int, int] | None:
    """Return pool, hour and correction of an id from `gpu_entry`; `None` for other ids."""
    found = _GPU_ENTRY.match(entry)
    return (found[1], int(found[2]), int(found[3] or 0)) if found else None


def _close_pool(connection: Connection, pool: str, until_us: int, at_us: int) -> int:
    versions = rated_versions(connection, pool, lock=True)
    start_us = _open_since(connection, pool, versions[0]) if versions else until_us
    until_us = min(until_us, start_us // HOUR_US * HOUR_US + HOURS_PER_CALL * HOUR_US)
    if start_us >= until_us:
        return 0
    found = uses(connection, pool, start_us, until_us)
    closed = _ClosedHours()
    for span in hours_of(start_us, until_us):
        hour_us = span[0] // HOUR_US * HOUR_US
        contract, use = version_in_force(versions, hour_us), found.get(hour_us) or PoolUse()
        result = split(pool, contract, span, use)
        closed.hours.append(_hour_row(pool, span, contract, result, use) | {"closed_us": at_us})
        closed.teams += _team_rows(pool, hour_us, result, use)
        entry = gpu_entry(pool, hour_us)
        closed.postings += posting_rows(entry, hour_us + HOUR_US - 1, result.close.postings)
    closed.write(connection)
    return len(closed.hours)


def _open_since(connection: Connection, pool: str, first: Version) -> int:
    """Return the start of the hours that are not closed."""
    last = last_closed_us(connection, pool)
    if last is not None:
        return last + HOUR_US
    return bill_start_us(connection, pool, since=first["since"], recorded_us=first["recorded_us"])


def _hour_row(
    pool: str, span: tuple[int, int], contract: Version, result: HourSplit, use: PoolUse
) -> DatabaseRow:
    close = result.close
    return {
        "pool": pool,
        "hour_us": span[0] // HOUR_US * HOUR_US,
        "contract_id": contract["id"],
        "replicas": contract["replicas"],
        "span_us": span[1] - span[0],
        "bill_pusd": close.bill_pusd,
        "used_pusd": sum(close.used_pusd.values()),
        "idle_pusd": close.idle_pusd,
        "unavailable_pusd": close.unavailable_pusd,
        "busy_us": sum(use.busy_us.values()),
        "unavailable_us": result.unavailable_us,
    }


def _team_rows(pool: str, hour_us: int, result: HourSplit, use: PoolUse) -> list[DatabaseRow]:
    return [
        {
            "pool": pool,
            "hour_us": hour_us,
            "team_id": team,
            "used_pusd": result.close.used_pusd.get(team, 0),
            "provisional_pusd": use.charged_pusd.get(team, 0),
            "engine_us": use.busy_us.get(team, 0),
        }
        for team in sorted({*use.busy_us, *use.charged_pusd})
    ]


_HOUR_SUMS = (
    "bill_pusd", "used_pusd", "idle_pusd", "unavailable_pusd", "busy_us", "unavailable_us",
)  # fmt: skip
_TEAM_SUMS = ("used_pusd", "provisional_pusd", "engine_us")


def _correct(connection: Connection, pool: str, hour_us: int, at_us: int) -> None:
    """Split the hour's bill again with all settles in it, and add the differences."""
    here = (GpuHourRow.pool == pool) & (GpuHourRow.hour_us == hour_us)
    query = select(*GpuHourRow.__table__.columns).where(here).order_by(GpuHourRow.correction)
    rows = [dict(row) for row in connection.execute(query).mappings()]
    if not rows:
        return  # before the pool's first bill
    stored = {name: sum(row[name] for row in rows) for name in _HOUR_SUMS}
    teams = _stored_teams(connection, pool, hour_us)
    use = uses(connection, pool, hour_us, hour_us + HOUR_US).get(hour_us) or PoolUse()
    billing = connection.execute(
        select(GpuContractRow.billing).where(GpuContractRow.id == rows[0]["contract_id"])
    ).scalar_one()
    piece = (hour_us, hour_us + rows[0]["span_us"])
    paid_us = paid_engine_us(billing, rows[0]["replicas"], piece, use)
    down_us = unavailable(use.busy_us, stored["unavailable_us"], paid_us)
    close = close_hour(
        pool,
        stored["bill_pusd"],
        busy_us=use.busy_us,
        unavailable_us=down_us,
        provisional_pusd=use.charged_pusd,
        hour_us=paid_us,
    )
    result = HourSplit(close, paid_us, down_us)
    changed = [
        row | {name: row[name] - teams.get(row["team_id"], {}).get(name, 0) for name in _TEAM_SUMS}
        for row in _team_rows(pool, hour_us, result, use)
    ]
    changed = [row for row in changed if any(row[name] for name in _TEAM_SUMS)]
    if not changed:
        return
    number = rows[-1]["correction"] + 1
    span = (hour_us, hour_us + HOUR_US)
    fresh = _hour_row(pool, span, {"id": rows[0]["contract_id"], "replicas": 0}, result, use)
    hour = fresh | {name: fresh[name] - stored[name] for name in _HOUR_SUMS}
    mark = {"correction": number}
    postings = correction_postings(
        pool,
        teams={row["team_id"]: row["used_pusd"] - row["provisional_pusd"] for row in changed},
        idle_pusd=hour["idle_pusd"],
        unavailable_pusd=hour["unavailable_pusd"],
        provisional_pusd=sum(row["provisional_pusd"] for row in changed),
    )
    _ClosedHours(
        [hour | mark | {"span_us": 0, "closed_us": at_us}],
        [row | mark for row in changed],
        posting_rows(gpu_entry(pool, hour_us, number), at_us, postings),
    ).write(connection)


def _stored_teams(connection: Connection, pool: str, hour_us: int) -> dict[str, dict[str, int]]:
    table = GpuHourTeamRow
    query = select(table.team_id, *(getattr(table, name) for name in _TEAM_SUMS)).where(
        table.pool == pool, table.hour_us == hour_us
    )
    found: dict[str, dict[str, int]] = {}
    for team, *values in connection.execute(query):
        sums = found.setdefault(team, dict.fromkeys(_TEAM_SUMS, 0))
        for name, value in zip(_TEAM_SUMS, values, strict=True):
            sums[name] += value
    return found
