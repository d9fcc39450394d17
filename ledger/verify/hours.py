"""Verification of closed GPU hours: shares add up to the bill, and no settle is missing."""

from collections.abc import Generator
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, literal_column, select

from ledger.accounts import gpu_payable
from ledger.fleet.hours import gpu_entry
from ledger.money import format_usd
from ledger.orm.books import LOST, AttemptRow, PostingRow
from ledger.orm.fleet import HOUR_US, GpuHourRow, GpuHourTeamRow
from ledger.orm.seals import RetiredUseRow
from ledger.orm.types import exact_sum

Found = Generator[tuple[str, str], None, None]
"""What is wrong, as (subject, message); nothing when all is well."""


def hours_add_up(connection: Connection) -> Found:
    """Check that teams + idle + unavailable equal the hour's bill, in rows and postings.

    A correction is a row of differences with its own postings; its bill is zero.
    """
    shares: dict[tuple[str, int, int], tuple[int, int]] = {}
    key = (GpuHourTeamRow.pool, GpuHourTeamRow.hour_us, GpuHourTeamRow.correction)
    for pool, hour_us, correction, used, charged in connection.execute(
        select(
            *key, exact_sum(GpuHourTeamRow.used_pusd), exact_sum(GpuHourTeamRow.provisional_pusd)
        ).group_by(*key)
    ):
        shares[pool, hour_us, correction] = (used, charged)
    owed = {
        row.entry_id: -row.amount_pusd
        for row in connection.execute(
            select(PostingRow.entry_id, PostingRow.amount_pusd).where(
                PostingRow.entry_id.like("gpu:%"), PostingRow.account.like(f"{gpu_payable('')}%")
            )
        )
    }
    for hour in connection.execute(select(*GpuHourRow.__table__.columns)):
        name = gpu_entry(hour.pool, hour.hour_us, hour.correction)
        used, charged = shares.get((hour.pool, hour.hour_us, hour.correction), (0, 0))
        if used != hour.used_pusd:
            yield name, f"teams used {format_usd(used)}, the hour says {format_usd(hour.used_pusd)}"
        if hour.used_pusd + hour.idle_pusd + hour.unavailable_pusd != hour.bill_pusd:
            yield name, f"its parts do not add up to the bill of {format_usd(hour.bill_pusd)}"
        if charged + owed.get(name, 0) != hour.bill_pusd:
            posted = format_usd(charged + owed.get(name, 0))
            yield name, f"postings come to {posted} of {format_usd(hour.bill_pusd)}"


def hours_hold_every_settle(connection: Connection) -> Found:
    """Check that a closed hour has the engine time and charges of all attempts settled in it."""
    counted = {
        (pool, hour_us, team): (engine_us, charged)
        for pool, hour_us, team, engine_us, charged in connection.execute(
            select(
                GpuHourTeamRow.pool,
                GpuHourTeamRow.hour_us,
                GpuHourTeamRow.team_id,
                exact_sum(GpuHourTeamRow.engine_us),
                exact_sum(GpuHourTeamRow.provisional_pusd),
            ).group_by(GpuHourTeamRow.pool, GpuHourTeamRow.hour_us, GpuHourTeamRow.team_id)
        )
    }
    hour: ColumnElement[int] = AttemptRow.settled_us.op("/")(literal_column(str(HOUR_US)))
    closed = (
        select(GpuHourRow.pool, GpuHourRow.hour_us).where(GpuHourRow.correction == 0).subquery()
    )
    settled = (
        select(
            AttemptRow.pool,
            closed.c.hour_us,
            AttemptRow.team_id,
            exact_sum(AttemptRow.engine_us),
            exact_sum(AttemptRow.cost_pusd),
        )
        .select_from(AttemptRow)
        .join(closed, and_(closed.c.pool == AttemptRow.pool, closed.c.hour_us == hour * HOUR_US))
        .where(AttemptRow.backend == "own", AttemptRow.status != LOST)
        .group_by(AttemptRow.pool, closed.c.hour_us, AttemptRow.team_id)
    )
    sums: dict[tuple[str, int, str], tuple[int, int]] = {
        (pool, hour_us, team): (engine_us, charged)
        for pool, hour_us, team, engine_us, charged in connection.execute(settled)
    }
    for pool, hour_us, team, engine_us, charged in connection.execute(_retired_use()):
        before = sums.get((pool, hour_us, team), (0, 0))
        sums[pool, hour_us, team] = (before[0] + engine_us, before[1] + charged)
    for (pool, hour_us, team), (engine_us, charged) in sums.items():
        count = counted.pop((pool, hour_us, team), (0, 0))
        if count != (engine_us, charged):
            inside = f"{count[0]} us and {count[1]} pico-USD"
            settled_then = f"{engine_us} us and {charged} pico-USD"
            yield gpu_entry(pool, hour_us), f"{team}: {inside}, but {settled_then} settled then"
    for (pool, hour_us, team), count in counted.items():
        if count != (0, 0):
            yield gpu_entry(pool, hour_us), f"{team} is in the hour, and nothing of it settled then"


def _retired_use() -> Select[*tuple[Any, ...]]:
    """Return a query for the use of retired attempts in closed hours."""
    table = RetiredUseRow
    closed = and_(
        GpuHourRow.pool == table.pool,
        GpuHourRow.hour_us == table.hour_us,
        GpuHourRow.correction == 0,
    )
    return select(
        table.pool, table.hour_us, table.team_id, table.engine_us, table.charged_pusd
    ).where(exists().where(closed))
