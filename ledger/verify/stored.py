"""Verification that the counted size of each team's stored objects is correct."""

from sqlalchemy import Connection, func, select

from ledger.orm.stored import StoredBytesRow, StoredObjectRow
from ledger.verify.hours import Found


def stored_bytes_add_up(connection: Connection) -> Found:
    """Check that the bytes counted for a team are the sum of its objects' sizes."""
    table = StoredObjectRow
    query = select(table.team_id, func.sum(table.size)).group_by(table.team_id)
    sums = {team: int(size) for team, size in connection.execute(query)}
    counted = select(StoredBytesRow.team_id, StoredBytesRow.bytes)
    for team, size in connection.execute(counted):
        taken = sums.pop(team, 0)
        if size != taken:
            yield f"stored objects of {team}", f"they take {taken} bytes, and {size} are counted"
    for team, size in sums.items():
        yield f"stored objects of {team}", f"they take {size} bytes, and nobody counts them"
