"""Queries on pools that size themselves: instances, changes, plans and scored hours."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

from sqlalchemy import Connection, select

from ledger.economics.scaling_score import InstanceRent, PlanSum, ScoredSpan
from ledger.fleet.fleet_records import FleetChange, FleetInstance, FleetPlanRecord, PlannerMemory
from ledger.orm.scaling import (
    FleetChangeRow,
    FleetHourRow,
    FleetInstanceRow,
    FleetPlanRow,
    FleetPoolRow,
)

NEVER_US = 2**63 - 1
_RENT = ("pusd_per_hour", "unit_s", "least_s")


def scaled_pools(connection: Connection) -> list[str]:
    """Return the pools that were ever sized, sorted by name."""
    return sorted(connection.execute(select(FleetPoolRow.pool)).scalars())


def renting_pools(connection: Connection) -> list[str]:
    """Return the pools with engines that cost money now, sorted by name."""
    row = FleetInstanceRow
    query = select(row.pool).where(row.gone_us.is_(None)).distinct()
    return sorted(connection.execute(query).scalars())


def open_instances(connection: Connection, pool: str) -> list[FleetInstance]:
    """Return the instances that cost money now, oldest first."""
    row = FleetInstanceRow
    return _instances(connection, row.pool == pool, row.gone_us.is_(None))


def instances_between(
    connection: Connection, pool: str, start_us: int, end_us: int
) -> list[FleetInstance]:
    """Return the instances that cost money in a span, oldest first."""
    row = FleetInstanceRow
    there = (row.gone_us.is_(None)) | (row.gone_us > start_us)
    return _instances(connection, row.pool == pool, row.asked_us < end_us, there)


def instances_named(connection: Connection, tokens: Sequence[str]) -> list[FleetInstance]:
    """Return the rows with these tokens, including ended ones."""
    return _instances(connection, FleetInstanceRow.token.in_(tokens)) if tokens else []


def has_instances(connection: Connection, pool: str) -> bool:
    """Return whether the pool ever had an instance owned by a plan."""
    row = FleetInstanceRow
    query = select(row.token).where(row.pool == pool, row.owned).limit(1)
    return connection.execute(query).first() is not None


def _instances(connection: Connection, *conditions: Any) -> list[FleetInstance]:
    row = FleetInstanceRow
    query = select(*row.__table__.columns).where(*conditions).order_by(row.asked_us, row.token)
    found = []
    for item in connection.execute(query).mappings():
        values = dict(item)
        rent = InstanceRent(*(values.pop(name) for name in _RENT))
        found.append(FleetInstance(rent=rent, **values))
    return found


def changes(
    connection: Connection,
    pool: str,
    *,
    since_us: int = 0,
    until_us: int = NEVER_US,
    limit: int = 1000,
) -> list[FleetChange]:
    """Return changes, newest first."""
    row = FleetChangeRow
    query = (
        select(*row.__table__.columns)
        .where(row.pool == pool, row.at_us >= since_us, row.at_us < until_us)
        .order_by(row.id.desc())
        .limit(limit)
    )
    return [FleetChange(**item) for item in connection.execute(query).mappings()]


def growing_changes(connection: Connection, pool: str, at_us: int) -> list[FleetChange]:
    """Return changes whose savings are still being counted."""
    row = FleetChangeRow
    query = (
        select(*row.__table__.columns)
        .where(row.pool == pool, row.until_us > at_us)
        .order_by(row.id)
    )
    return [FleetChange(**item) for item in connection.execute(query).mappings()]


def last_plan(connection: Connection, pool: str) -> FleetPlanRecord | None:
    """Return the newest stored plan, `None` without one."""
    found = plans(connection, pool, limit=1)
    return found[0] if found else None


def plans(
    connection: Connection,
    pool: str,
    *,
    since_us: int = 0,
    until_us: int = NEVER_US,
    limit: int = 1000,
) -> list[FleetPlanRecord]:
    """Return plans, newest first."""
    row = FleetPlanRow
    columns = [column for column in row.__table__.columns if column.name != "id"]
    query = (
        select(*columns)
        .where(row.pool == pool, row.at_us >= since_us, row.at_us < until_us)
        .order_by(row.id.desc())
        .limit(limit)
    )
    return [FleetPlanRecord(**item) for item in connection.execute(query).mappings()]


def planner_memory(connection: Connection, pool: str) -> PlannerMemory | None:
    """Return the state from which the pool's planner continues, `None` without one."""
    row = FleetPoolRow
    query = select(row.through_us, row.memory, row.advised).where(row.pool == pool)
    found = connection.execute(query).mappings().first()
    return None if found is None else PlannerMemory(**found)


def scored_hours(
    connection: Connection, pool: str, start_us: int = 0, end_us: int | None = None
) -> list[ScoredSpan]:
    """Return scored hours, ordered by time."""
    row = FleetHourRow
    query = select(*row.__table__.columns).where(row.pool == pool, row.hour_us >= start_us)
    if end_us is not None:
        query = query.where(row.hour_us < end_us)
    found = connection.execute(query.order_by(row.hour_us)).mappings()
    return [span_of_row(dict(item)) for item in found]


def scored_whole(connection: Connection, pool: str) -> ScoredSpan | None:
    """Return all scored hours as one span, `None` without any."""
    found = scored_hours(connection, pool)
    return reduce(add, found) if found else None


def span_of_row(row: Mapping[str, Any]) -> ScoredSpan:
    """Return a row of scored hours as a span."""
    return ScoredSpan(
        start_us=row["hour_us"],
        covered_us=row["covered_us"],
        requests=row["requests"],
        ran=PlanSum(row["ran_rent_pusd"], row["ran_api_pusd"]),
        advised=PlanSum(row["advised_rent_pusd"], row["advised_api_pusd"]),
        curve=tuple(row["curve"]),
        one_rent_pusd=row["one_rent_pusd"],
        least=row["least"],
        fixed_engines=row["fixed_engines"],
    )


def score_of(span: ScoredSpan) -> dict[str, Any]:
    """Return a span's values as columns of a row of scored hours."""
    return {
        "covered_us": span.covered_us,
        "requests": span.requests,
        "ran_rent_pusd": span.ran.rent_pusd,
        "ran_api_pusd": span.ran.api_pusd,
        "advised_rent_pusd": span.advised.rent_pusd,
        "advised_api_pusd": span.advised.api_pusd,
        "curve": list(span.curve),
        "one_rent_pusd": span.one_rent_pusd,
        "least": span.least,
        "fixed_engines": span.fixed_engines,
    }
