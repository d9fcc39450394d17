"""Removal of old rows of reports and of pools that size themselves.

Daily amounts stay: the scored hours of a day in the reporting zone become one row, which pages and
sums read as before. The newest plan, instance and report stay, because their successors continue
from them. Rows that are running, open or still counting savings are never old.
"""

from collections.abc import Iterable
from functools import reduce
from itertools import groupby
from operator import add
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, and_, delete, or_, select, update

from ledger.fleet.fleet_reads import score_of, span_of_row
from ledger.orm.base import aliased
from ledger.orm.reports import ReportTurnRow
from ledger.orm.scaling import FleetChangeRow, FleetHourRow, FleetInstanceRow, FleetPlanRow
from ledger.reporting_zone import ReportingZone, reporting_zone

ROWS_AT_ONCE = 500  # maximum rows of each table in one transaction


def forget_scaling(engine: Engine, *, before_us: int) -> int:
    """Remove some rows from before a time. Return the number, 0 once none is left."""
    with engine.connect() as connection:
        days = _days_to_join(connection, reporting_zone(connection), before_us)
        old = {table: _some(connection, table, where) for table, where in _old(before_us)}
    if not days and not any(old.values()):
        return 0
    went = 0
    with engine.begin() as connection:
        for pool, hours in days:
            went += _join_hours(connection, pool, hours)
        for table, keys in old.items():
            went += _delete(connection, table, keys)
    return went


def _old(before_us: int) -> Iterable[tuple[Any, ColumnElement[bool]]]:
    """Yield each table with the condition of rows that may be removed."""
    plan, change, instance, turn = FleetPlanRow, FleetChangeRow, FleetInstanceRow, ReportTurnRow
    later = aliased(plan)
    yield (
        plan,
        and_(
            plan.at_us < before_us,
            select(later.id).where(later.pool == plan.pool, later.id > plan.id).exists(),
        ),
    )
    yield (
        change,
        and_(
            change.at_us < before_us,
            change.until_us < before_us,
            or_(change.mode != "act", change.outcome.is_not(None)),
        ),
    )
    another = aliased(instance)
    yield (
        instance,
        and_(
            instance.gone_us < before_us,
            or_(
                ~instance.owned,
                select(another.token)
                .where(
                    another.pool == instance.pool,
                    another.owned,
                    another.token != instance.token,
                    or_(
                        another.gone_us.is_(None),
                        another.gone_us > instance.gone_us,
                        and_(another.gone_us == instance.gone_us, another.token > instance.token),
                    ),
                )
                .exists(),
            ),
        ),
    )
    newer = aliased(turn)
    yield (
        turn,
        and_(
            turn.start_us < before_us,
            select(newer.name)
            .where(
                newer.name == turn.name, newer.place == turn.place, newer.start_us > turn.start_us
            )
            .exists(),
        ),
    )


def _some(connection: Connection, table: Any, where: ColumnElement[bool]) -> list[Any]:
    columns = list(table.__table__.primary_key)
    query = select(*columns).where(where).order_by(*columns).limit(ROWS_AT_ONCE)
    return list(connection.execute(query).all())


def _delete(connection: Connection, table: Any, keys: list[Any]) -> int:
    columns = list(table.__table__.primary_key)
    went = 0
    for key in keys:
        here = and_(*(column == part for column, part in zip(columns, key, strict=True)))
        went += connection.execute(delete(table).where(here)).rowcount
    return went


def _days_to_join(
    connection: Connection, zone: ReportingZone, before_us: int
) -> list[tuple[str, list[int]]]:
    """Return, by pool, the hours of old days that have more than one row."""
    row = FleetHourRow
    until_us = zone.midnight_us(zone.date_of(before_us))
    query = select(row.pool, row.hour_us).where(row.hour_us < until_us)
    ordered = connection.execute(query.order_by(row.pool, row.hour_us)).all()
    days = []
    for (pool, _), hours in groupby(ordered, key=lambda key: (key[0], zone.date_of(key[1]))):
        numbers = [hour_us for _, hour_us in hours]
        if len(numbers) > 1:
            days.append((pool, numbers))
    return days[: ROWS_AT_ONCE // 24]


def _join_hours(connection: Connection, pool: str, hours: list[int]) -> int:
    """Merge a day's rows into one at its first hour. Return the number removed."""
    row = FleetHourRow
    here = (row.pool == pool, row.hour_us.in_(hours))
    query = select(*row.__table__.columns).where(*here).order_by(row.hour_us).with_for_update()
    spans = [span_of_row(dict(item)) for item in connection.execute(query).mappings()]
    if len(spans) < 2:
        return 0  # another host was first
    first_us = spans[0].start_us
    gone = delete(row).where(*here, row.hour_us != first_us)
    went = connection.execute(gone).rowcount
    first = update(row).where(row.pool == pool, row.hour_us == first_us)
    connection.execute(first.values(score_of(reduce(add, spans))))
    return went
