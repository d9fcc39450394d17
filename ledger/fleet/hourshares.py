"""The shares of closed GPU hours: teams, idle and unavailable. Together they are the bill.

Corrections are added to the hours that they correct. Open hours have no final shares and are left
out; `closed_until_us` returns the end of each pool's closed hours.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, and_, func, select

from ledger.orm.base import aliased
from ledger.orm.tables import GpuContractRow, GpuHourRow, GpuHourTeamRow, exact_sum
from ledger.spans import HOUR_US, Scope, rows

Bearer = Literal["used", "idle", "unavailable"]


@dataclass(frozen=True, slots=True)
class HourContract:
    """The contract version that hours were billed by. `gpus` is per replica."""

    id: int
    pool: str
    gpu_type: str
    gpus: int
    billing: str
    pusd_per_hour: int
    source: str | None
    simulated: bool


@dataclass(frozen=True, slots=True)
class HourShare:
    """A share of the closed hours of one bucket. `team` is set only for used hours.

    `engine_us` is measured replica time: working, idle or unavailable.
    """

    start_us: int
    pool: str
    contract_id: int
    bearer: Bearer
    team: str | None
    pusd: int
    engine_us: int


def hour_contracts(connection: Connection) -> dict[int, HourContract]:
    """Return every contract version with a rate, by id."""
    table = GpuContractRow
    statement = select(
        table.id, table.pool, table.gpu_type, table.gpus_per_replica, table.billing,
        table.pusd_per_hour, table.source, table.simulated,
    ).where(table.pusd_per_hour.is_not(None))  # fmt: skip
    return {row[0]: HourContract(*row) for row in rows(connection, statement)}


def hour_shares(connection: Connection, scope: Scope, *, bucket_us: int) -> Iterator[HourShare]:
    """Yield shares of closed hours that start in the scope, by bucket, pool and contract.

    With a team in the scope, only its own shares: unused hours belong to no team.
    """
    width = max(bucket_us, HOUR_US)
    yield from _used_shares(connection, scope, width)
    if scope.team is None:
        yield from _unused_shares(connection, scope, width)


def closed_until_us(connection: Connection) -> dict[str, int | None]:
    """Return the end of each pool's last closed hour, `None` without closed hours."""
    table = GpuHourRow
    statement = (
        select(GpuContractRow.pool, func.max(table.hour_us))
        .outerjoin(table, table.pool == GpuContractRow.pool)
        .group_by(GpuContractRow.pool)
        .order_by(GpuContractRow.pool)
    )
    found = rows(connection, statement)
    return {pool: None if last is None else last + HOUR_US for pool, last in found}


def _used_shares(connection: Connection, scope: Scope, width: int) -> Iterator[HourShare]:
    table, closed = GpuHourTeamRow, aliased(GpuHourRow)
    start = (table.hour_us - table.hour_us % width).label("start_us")
    same = and_(closed.pool == table.pool, closed.hour_us == table.hour_us, closed.correction == 0)
    statement = (
        select(
            start, table.pool, closed.contract_id, table.team_id,
            exact_sum(table.used_pusd), exact_sum(table.engine_us),
        )
        .join(closed, same)
        .where(table.hour_us >= scope.start_us, table.hour_us < scope.end_us)
        .group_by("start_us", table.pool, closed.contract_id, table.team_id)
        .order_by("start_us", table.pool, closed.contract_id, table.team_id)
    )  # fmt: skip
    if scope.team is not None:
        statement = statement.where(table.team_id == scope.team)
    for start_us, pool, contract, team, pusd, engine_us in rows(connection, statement):
        yield HourShare(start_us, pool, contract, "used", team, pusd, engine_us)


def _unused_shares(connection: Connection, scope: Scope, width: int) -> Iterator[HourShare]:
    table = GpuHourRow
    start = (table.hour_us - table.hour_us % width).label("start_us")
    statement = (
        select(
            start, table.pool, table.contract_id, exact_sum(table.idle_pusd),
            exact_sum(table.unavailable_pusd), exact_sum(table.replicas * table.span_us),
            exact_sum(table.busy_us), exact_sum(table.unavailable_us),
        )
        .where(table.hour_us >= scope.start_us, table.hour_us < scope.end_us)
        .group_by("start_us", table.pool, table.contract_id)
        .order_by("start_us", table.pool, table.contract_id)
    )  # fmt: skip
    for start_us, pool, contract, idle, lost, paid_us, busy_us, lost_us in rows(
        connection, statement
    ):
        idle_us = max(0, paid_us - busy_us - lost_us)
        yield HourShare(start_us, pool, contract, "idle", None, idle, idle_us)
        yield HourShare(start_us, pool, contract, "unavailable", None, lost, lost_us)
