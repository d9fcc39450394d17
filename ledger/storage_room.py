"""The storage limit of stored objects over all teams, kept under concurrent writes.

While much space is left, small writes run in parallel: each checks the sum under a shared lock, and
all writes that can run at once fit into `SHARED_BYTES`. Other writes take an exclusive lock.
"""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection, Engine, func, select

from ledger.orm.stored import StoredBytesRow

SMALL_BYTES: Final = 1024 * 1024  # of who need not be alone
SHARED_BYTES: Final = 256 * SMALL_BYTES  # by more than 256 connections nobody stores at once


class NeedsToBeAlone(Exception):
    """A write that needs the exclusive lock: it is large, or little space is left."""


def lock_room(connection: Connection, needed: int, total_bytes: int, *, alone: bool) -> int:
    """Return the bytes of all teams, to which `needed` may be added in this transaction.

    The caller holds the lock of the team and waits for no other lock afterwards. Raises
    `NeedsToBeAlone` if concurrent writes might use up the space. SQLite has one writer at a time.
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
    """Run `store(connection, alone)` in a transaction; repeat it with `alone` if needed."""
    try:
        with engine.begin() as connection:
            store(connection, False)
    except NeedsToBeAlone:
        with engine.begin() as connection:
            store(connection, True)
