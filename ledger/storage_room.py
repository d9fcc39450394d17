"""Room for the stored objects of all teams: their sum stays in its bound, whoever stores at once.

Where much is left, those who store little share it: each looks at the sum while it holds a shared
lock, and all that can be under way beside it fits into `SHARED_BYTES`. Everybody else is alone.
"""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection, Engine, func, select

from ledger.orm.stored import StoredBytesRow

SMALL_BYTES: Final = 1024 * 1024  # of who need not be alone
SHARED_BYTES: Final = 256 * SMALL_BYTES  # by more than 256 connections nobody stores at once


class NeedsToBeAlone(Exception):
    """Little room is left, or much of it is needed: try again with `alone`."""


def lock_room(connection: Connection, needed: int, total_bytes: int, *, alone: bool) -> int:
    """Return the bytes of all teams, to which `needed` may be added until the transaction ends.

    Called behind the team's own lock, and no other lock is waited for afterwards. Raises
    `NeedsToBeAlone` where others might use up the room meanwhile. SQLite has one writer at a time.
    """
    is_shared = connection.dialect.name == "postgresql" and not alone
    if is_shared and needed > SMALL_BYTES:
        raise NeedsToBeAlone
    if connection.dialect.name == "postgresql":
        lock = func.pg_advisory_xact_lock if alone else func.pg_advisory_xact_lock_shared
        connection.execute(select(lock(func.hashtext("room for stored objects"))))
    total = int(connection.execute(select(func.sum(StoredBytesRow.bytes))).scalar_one() or 0)
    if is_shared and total + needed + SHARED_BYTES > total_bytes:
        raise NeedsToBeAlone
    return total


def store_in_room(engine: Engine, store: Callable[[Connection, bool], None]) -> None:
    """Do `store(connection, alone)` in a transaction; once more, alone, where it has to be."""
    try:
        with engine.begin() as connection:
            store(connection, False)
    except NeedsToBeAlone:
        with engine.begin() as connection:
            store(connection, True)
