"""Check whether the debt to a party is only for simulated traffic or hardware."""

from sqlalchemy import Connection, select

from ledger.orm.fleet import GpuContractRow
from ledger.queries.rollups import SumQuery, sums
from ledger.spans import DAY_US, EVER, Scope
from ledger.sums.rollup import ATTEMPTS

_GPU, _PROVIDER = "gpu:", "provider:"


def is_simulated(connection: Connection, party: str, at_us: int) -> bool:
    """Return whether a party was simulated on the UTC day of a time.

    A pool is simulated if one of its contracts is. A provider is simulated if all its attempts of
    the day are, or, without attempts on the day, all its attempts ever.
    """
    if party.startswith(_GPU):
        table, pool = GpuContractRow, party.removeprefix(_GPU)
        query = select(table.pool).where(table.pool == pool, table.simulated.is_(True)).limit(1)
        return connection.execute(query).first() is not None
    targets = f"{party.removeprefix(_PROVIDER)}/"
    start_us = at_us - at_us % DAY_US
    ask = SumQuery(
        ("simulated",),
        where=lambda of: [of.target.startswith(targets, autoescape=True)],
        measures=("attempts",),
    )
    for scope in (Scope(start_us, start_us + DAY_US), EVER):
        if found := sums(connection, ATTEMPTS, scope, ask):
            return all(simulated for _, simulated in found)
    return False
