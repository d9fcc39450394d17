"""The hourly close: each pool's hour of bill becomes teams' use, idle and unavailable, exactly.

Hours accrue by contract, so an hour without a single request is closed as well. Use is the
measured engine time of the attempts that settled in the hour; unavailable is what telemetry saw
of engines loading, draining or down; idle is the rest, also where nothing was observed. A pool
without a rate stays open: an unknown bill is not zero. A rate that is stated later closes them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, func, insert, literal_column, select

from ledger.accounts import HourClose, close_hour
from ledger.contracts import GpuContract as Terms
from ledger.contracts import gpu_bill_pusd
from ledger.orm_books import Attempt, Posting
from ledger.orm_fleet import EngineSample, GpuContract, GpuHour, GpuHourTeam
from ledger.orm_types import exact_sum
from ledger.rows import Row, posting_rows

HOUR_US = 3_600_000_000
GRACE_US = 120_000_000  # settles of an hour may reach the books a little later
HOURS_PER_CALL = 2_000
# A sample stands for the time since its engine's last one, but never for longer than this.
SAMPLE_REACH_US = 900_000_000
DOWN = frozenset({"loading", "draining", "down"})


@dataclass(slots=True)
class _Use:
    """What one hour of a pool saw; `up` are spans in which its machines ran."""

    busy_us: dict[str, int] = field(default_factory=dict)
    charged_pusd: dict[str, int] = field(default_factory=dict)
    down_us: int = 0
    up: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Closed:
    hours: list[Row] = field(default_factory=list)
    teams: list[Row] = field(default_factory=list)
    postings: list[Row] = field(default_factory=list)


def close_hours(engine: Engine, *, at_us: int) -> int:
    """Close the hours that are over, oldest first; returns how many (call again until 0)."""
    until_us = (at_us - GRACE_US) // HOUR_US * HOUR_US
    with engine.connect() as connection:
        pools = sorted(connection.execute(select(GpuContract.pool).distinct()).scalars())
    closed = 0
    for pool in pools:
        with engine.begin() as connection:
            closed += _close_pool(connection, pool, until_us, at_us)
    return closed


def _close_pool(connection: Connection, pool: str, until_us: int, at_us: int) -> int:
    versions = _rated_versions(connection, pool)
    start_us = _open_since(connection, pool, versions) if versions else until_us
    until_us = min(until_us, start_us + HOURS_PER_CALL * HOUR_US)
    if start_us >= until_us:
        return 0
    uses = _uses(connection, pool, start_us, until_us)
    closed = _Closed()
    for hour_us in range(start_us, until_us, HOUR_US):
        use = uses.get(hour_us) or _Use()
        _close_one(closed, (pool, hour_us), _in_force(versions, hour_us), use, at_us)
    for table, rows in (
        (GpuHour, closed.hours),
        (GpuHourTeam, closed.teams),
        (Posting, closed.postings),
    ):
        if rows:
            connection.execute(insert(table), rows)
    return len(closed.hours)


def _close_one(
    closed: _Closed, place: tuple[str, int], contract: Row, use: _Use, at_us: int
) -> None:
    pool, hour_us = place
    paid_us = contract["replicas"] * HOUR_US
    down_us = min(use.down_us, max(0, paid_us - sum(use.busy_us.values())))
    close = close_hour(
        pool,
        _bill_pusd(contract, hour_us, use),
        busy_us=use.busy_us,
        unavailable_us=down_us,
        provisional_pusd=use.charged_pusd,
        hour_us=paid_us,
    )
    closed.hours.append(
        {
            "pool": pool,
            "hour_us": hour_us,
            "contract_id": contract["id"],
            "replicas": contract["replicas"],
            "bill_pusd": close.bill_pusd,
            "used_pusd": sum(close.used_pusd.values()),
            "idle_pusd": close.idle_pusd,
            "unavailable_pusd": close.unavailable_pusd,
            "busy_us": sum(use.busy_us.values()),
            "unavailable_us": down_us,
            "closed_us": at_us,
        }
    )
    closed.teams += _team_rows(place, close, use)
    closed.postings += posting_rows(gpu_entry(pool, hour_us), hour_us + HOUR_US - 1, close.postings)


def gpu_entry(pool: str, hour_us: int) -> str:
    """The entry id under which an hour's close is posted."""
    return f"gpu:{pool}:{hour_us}"


def _team_rows(place: tuple[str, int], close: HourClose, use: _Use) -> list[Row]:
    return [
        {
            "pool": place[0],
            "hour_us": place[1],
            "team_id": team,
            "used_pusd": close.used_pusd.get(team, 0),
            "provisional_pusd": use.charged_pusd.get(team, 0),
            "engine_us": use.busy_us.get(team, 0),
        }
        for team in sorted({*use.busy_us, *use.charged_pusd})
    ]


def _rated_versions(connection: Connection, pool: str) -> list[Row]:
    """The pool's contracts, oldest first. Locked: two closers would post an hour twice."""
    query = (
        select(*GpuContract.__table__.columns)
        .where(GpuContract.pool == pool, GpuContract.pusd_per_hour.is_not(None))
        .order_by(GpuContract.recorded_us, GpuContract.id)
        .with_for_update()
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def _in_force(versions: Sequence[Row], hour_us: int) -> Row:
    """The latest stated by the hour's end; an hour before all of them takes the first."""
    stated = [row for row in versions if row["recorded_us"] < hour_us + HOUR_US]
    return stated[-1] if stated else versions[0]


def _open_since(connection: Connection, pool: str, versions: Sequence[Row]) -> int:
    """The first hour that is not closed: the contract's first, or the first that was seen."""
    last = connection.execute(
        select(func.max(GpuHour.hour_us)).where(GpuHour.pool == pool)
    ).scalar_one()
    if last is not None:
        return int(last) + HOUR_US
    if versions[0]["since"] is not None:
        return _midnight_us(versions[0]["since"])
    first = [
        connection.execute(query).scalar_one()
        for query in (
            select(func.min(EngineSample.at_us)).where(EngineSample.pool == pool),
            select(func.min(Attempt.opened_us)).where(Attempt.pool == pool),
        )
    ]
    seen = [at_us for at_us in (*first, versions[0]["recorded_us"]) if at_us is not None]
    return min(seen) // HOUR_US * HOUR_US


def _uses(connection: Connection, pool: str, start_us: int, until_us: int) -> dict[int, _Use]:
    uses: dict[int, _Use] = {}
    hour = Attempt.settled_us.op("/")(literal_column(str(HOUR_US)))  # whole hours on both
    query = (
        select(hour, Attempt.team_id, exact_sum(Attempt.engine_us), exact_sum(Attempt.cost_pusd))
        .where(
            Attempt.backend == "own",
            Attempt.pool == pool,
            Attempt.settled_us >= start_us,
            Attempt.settled_us < until_us,
            Attempt.status != "lost",  # its bound is no bill: nothing was posted for it
        )
        .group_by(hour, Attempt.team_id)
    )
    for number, team, engine_us, cost in connection.execute(query):
        use = uses.setdefault(int(number) * HOUR_US, _Use())
        use.busy_us[team], use.charged_pusd[team] = engine_us, cost
    for begin_us, end_us, health in _spans(connection, pool, start_us, until_us):
        for hour_us, (first, last) in _by_hour(begin_us, end_us):
            use = uses.setdefault(hour_us, _Use())
            if health in DOWN:
                use.down_us += last - first
            if health != "down":
                use.up.append((first, last))
    return uses


def _spans(
    connection: Connection, pool: str, start_us: int, until_us: int
) -> Iterator[tuple[int, int, str]]:
    """For how long each sample stands: since its engine's last, within reach."""
    query = (
        select(EngineSample.engine, EngineSample.at_us, EngineSample.health)
        .where(
            EngineSample.pool == pool,
            EngineSample.at_us >= start_us - SAMPLE_REACH_US,
            EngineSample.at_us < until_us + SAMPLE_REACH_US,
        )
        .order_by(EngineSample.engine, EngineSample.at_us)
    )
    before: tuple[str, int] = ("", 0)
    for engine, at_us, health in connection.execute(query):
        if before[0] == engine:
            begin_us = max(before[1], at_us - SAMPLE_REACH_US, start_us)
            if begin_us < min(at_us, until_us):
                yield begin_us, min(at_us, until_us), health
        before = (engine, at_us)


def _by_hour(begin_us: int, end_us: int) -> Iterator[tuple[int, tuple[int, int]]]:
    while begin_us < end_us:
        hour_us = begin_us // HOUR_US * HOUR_US
        last = min(end_us, hour_us + HOUR_US)
        yield hour_us, (begin_us, last)
        begin_us = last


def _bill_pusd(contract: Mapping[str, Any], hour_us: int, use: _Use) -> int:
    terms = Terms(
        billing=contract["billing"],
        pusd_per_hour=contract["pusd_per_hour"],
        gpus=contract["gpus_per_replica"] * contract["replicas"],
        since_us=None if contract["since"] is None else _midnight_us(contract["since"]),
        until_us=None
        if contract["until"] is None
        else _midnight_us(contract["until"] + timedelta(days=1)),
        running_us=tuple(use.up),
    )
    return gpu_bill_pusd(terms, hour_us, hour_us + HOUR_US)


def _midnight_us(day: date) -> int:
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return int(moment.timestamp()) * 1_000_000
