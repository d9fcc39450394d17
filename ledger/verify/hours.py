"""The invariants of closed GPU hours: what bears the bill adds up to it, and no settle is missing.

Part of `verify`, which runs every check.
"""

from collections.abc import Generator
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, literal_column, select

from ledger.accounts import gpu_payable
from ledger.fleet.hours import gpu_entry
from ledger.money import format_usd
from ledger.orm.books import Attempt, Posting
from ledger.orm.fleet import HOUR_US, GpuHour, GpuHourTeam
from ledger.orm.seals import RetiredUse
from ledger.orm.types import exact_sum
from ledger.writing.rows import LOST

Found = Generator[tuple[str, str], None, None]
"""What is wrong, as (subject, message); nothing when all is well."""


def hours_add_up(connection: Connection) -> Found:
    """Teams + idle + unavailable = the hour's bill, in the rows and in the postings.

    A correction is a row of differences with postings of its own: its bill is zero.
    """
    shares: dict[tuple[str, int, int], tuple[int, int]] = {}
    key = (GpuHourTeam.pool, GpuHourTeam.hour_us, GpuHourTeam.correction)
    for pool, hour_us, correction, used, charged in connection.execute(
        select(
            *key, exact_sum(GpuHourTeam.used_pusd), exact_sum(GpuHourTeam.provisional_pusd)
        ).group_by(*key)
    ):
        shares[pool, hour_us, correction] = (used, charged)
    owed = {
        row.entry_id: -row.amount_pusd
        for row in connection.execute(
            select(Posting.entry_id, Posting.amount_pusd).where(
                Posting.entry_id.like("gpu:%"), Posting.account.like(f"{gpu_payable('')}%")
            )
        )
    }
    for hour in connection.execute(select(*GpuHour.__table__.columns)):
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
    """A closed hour counts the engine time and the charges of all attempts that settled in it."""
    counted = {
        (pool, hour_us, team): (engine_us, charged)
        for pool, hour_us, team, engine_us, charged in connection.execute(
            select(
                GpuHourTeam.pool,
                GpuHourTeam.hour_us,
                GpuHourTeam.team_id,
                exact_sum(GpuHourTeam.engine_us),
                exact_sum(GpuHourTeam.provisional_pusd),
            ).group_by(GpuHourTeam.pool, GpuHourTeam.hour_us, GpuHourTeam.team_id)
        )
    }
    hour: ColumnElement[int] = Attempt.settled_us.op("/")(literal_column(str(HOUR_US)))
    closed = select(GpuHour.pool, GpuHour.hour_us).where(GpuHour.correction == 0).subquery()
    settled = (
        select(
            Attempt.pool,
            closed.c.hour_us,
            Attempt.team_id,
            exact_sum(Attempt.engine_us),
            exact_sum(Attempt.cost_pusd),
        )
        .join(closed, and_(closed.c.pool == Attempt.pool, closed.c.hour_us == hour * HOUR_US))
        .where(Attempt.backend == "own", Attempt.status != LOST)
        .group_by(Attempt.pool, closed.c.hour_us, Attempt.team_id)
    )
    sums: dict[tuple[str, int, str], tuple[int, int]] = {
        (pool, hour_us, team): (engine_us, charged)
        for pool, hour_us, team, engine_us, charged in connection.execute(settled)
    }
    for pool, hour_us, team, engine_us, charged in connection.execute(_retired()):
        before = sums.get((pool, hour_us, team), (0, 0))
        sums[pool, hour_us, team] = (before[0] + engine_us, before[1] + charged)
    for (pool, hour_us, team), (engine_us, charged) in sums.items():
        found = counted.pop((pool, hour_us, team), (0, 0))
        if found != (engine_us, charged):
            inside = f"{found[0]} us and {found[1]} pico-USD"
            settled_then = f"{engine_us} us and {charged} pico-USD"
            yield gpu_entry(pool, hour_us), f"{team}: {inside}, but {settled_then} settled then"
    for (pool, hour_us, team), found in counted.items():
        if found != (0, 0):
            yield gpu_entry(pool, hour_us), f"{team} is in the hour, and nothing of it settled then"


def _retired() -> Select[*tuple[Any, ...]]:
    """What retired attempts left in hours that are closed."""
    table = RetiredUse
    closed = and_(
        GpuHour.pool == table.pool, GpuHour.hour_us == table.hour_us, GpuHour.correction == 0
    )
    return select(
        table.pool, table.hour_us, table.team_id, table.engine_us, table.charged_pusd
    ).where(exists().where(closed))
