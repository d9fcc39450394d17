"""The number of ordered engines of a pool, for code that sizes its workload."""

from sqlalchemy import Connection, func, select

from ledger.orm.scaling import FleetInstanceRow, FleetPoolRow


def ordered_engines(connection: Connection, pool: str) -> int | None:
    """Return the number of replicas ordered for a pool, `None` if the pool was never sized.

    Replica i has place i, and the highest place stops first. Replicas below a draining engine stay
    until that engine was told to stop.
    """
    known = select(FleetPoolRow.pool).where(FleetPoolRow.pool == pool)
    if connection.execute(known).first() is None:
        return None
    row = FleetInstanceRow
    query = select(func.max(row.place)).where(
        row.pool == pool, row.owned, row.gone_us.is_(None), row.told_us.is_(None)
    )
    highest = connection.execute(query).scalar_one()
    return 0 if highest is None else highest + 1
