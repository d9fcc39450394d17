"""The lease to size a pool: one holder at a time, among all hosts of a ledger.

A lease ends without a renewal. Each new holder gets a higher fence. Every change is written in the
transaction that checks the fence, so a stalled holder that lost its lease cannot write. Changes are
made only after they were written.
"""

from sqlalchemy import Connection, Engine, case, select, update

from ledger.orm.scaling import FleetLeaseRow
from ledger.upserts import insert_into


class FleetLeaseLost(Exception):
    """Another process holds the lease, or the lease ended. Nothing may be changed."""


def take_lease(
    engine: Engine, pool: str, holder: str, *, now_us: int, length_us: int
) -> int | None:
    """Take or renew the lease. Return its fence, or `None` while another process holds it."""
    row, until_us = FleetLeaseRow, now_us + length_us
    with engine.begin() as connection:
        fresh = insert_into(connection, row).values(
            pool=pool, holder=holder, until_us=until_us, fence=1
        )
        connection.execute(fresh.on_conflict_do_nothing())
        renewed = (
            update(row)
            .where(row.pool == pool, (row.holder == holder) | (row.until_us <= now_us))
            .values(
                holder=holder,
                until_us=until_us,
                fence=case((row.holder == holder, row.fence), else_=row.fence + 1),
            )
        )
        if not connection.execute(renewed).rowcount:
            return None
        query = select(row.fence).where(row.pool == pool)
        return int(connection.execute(query).scalar_one())


def check_lease(connection: Connection, pool: str, fence: int, *, now_us: int) -> None:
    """Lock the lease in a transaction. Raises `FleetLeaseLost` if the lease is lost."""
    row = FleetLeaseRow
    kept = (
        update(row)
        .where(row.pool == pool, row.fence == fence, row.until_us > now_us)
        .values(fence=fence)
    )
    if not connection.execute(kept).rowcount:
        raise FleetLeaseLost(f"the lease of pool {pool} is another's, or over")


def give_lease_back(engine: Engine, pool: str, holder: str) -> None:
    """End the lease, so that another process can take it at once."""
    row = FleetLeaseRow
    with engine.begin() as connection:
        mine = (row.pool == pool) & (row.holder == holder)
        connection.execute(update(row).where(mine).values(until_us=0))


def lease_holder(connection: Connection, pool: str, *, now_us: int) -> str | None:
    """Return the holder of the lease at this time, `None` without one."""
    row = FleetLeaseRow
    query = select(row.holder).where(row.pool == pool, row.until_us > now_us)
    return connection.execute(query).scalar_one_or_none()
