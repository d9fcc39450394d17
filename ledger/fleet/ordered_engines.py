"""The number of engines that are ordered of a pool, for whoever sizes its workload."""

from sqlalchemy import Connection, func, select

from ledger.orm.scaling import FleetInstanceRow, FleetPoolRow


def ordered_engines(connection: Connection, pool: str) -> int | None:
    """Return how many replicas hold all that is wanted; None where the pool was never sized.

    Replica i is place i, and the highest one goes first: the replicas below an engine that still
    drains stay until its stop was told.
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
