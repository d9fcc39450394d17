"""How many engines of a pool are ordered, as whoever sizes its workload should know."""

from sqlalchemy import Connection, func, select

from ledger.orm.scaling import FleetInstanceRow, FleetPoolRow


def ordered_engines(connection: Connection, pool: str) -> int | None:
    """Return the engines that are wanted; None where the pool was never sized.

    One that drains counts until its stop was told: it serves until then.
    """
    known = select(FleetPoolRow.pool).where(FleetPoolRow.pool == pool)
    if connection.execute(known).first() is None:
        return None
    row = FleetInstanceRow
    query = select(func.count()).where(
        row.pool == pool, row.owned, row.gone_us.is_(None), row.told_us.is_(None)
    )
    return connection.execute(query).scalar_one()
