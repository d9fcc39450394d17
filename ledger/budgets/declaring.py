"""Declarations of budgets and all that moves their money keep out of each other's way.

A declaration counts what a window has seen, which takes seconds in a month of many attempts. Who
declares therefore takes a turn first, in which the others go on, and counts what cannot change any
more (`last_attempt`). Then it keeps all others away, and counts what came since.
"""

from sqlalchemy import Connection, func, select

from ledger.orm.books import AttemptRow


def await_turn(connection: Connection) -> None:
    """Wait until nobody else declares budgets; until the transaction ends. Money goes on moving."""
    if connection.dialect.name == "postgresql":
        turn = func.hashtext("the turn to declare budgets")
        connection.execute(select(func.pg_advisory_xact_lock(turn)))


def serialize_declarations(connection: Connection, *, shared: bool = False) -> None:
    """Wait until nobody declares budgets, or (not `shared`) moves their money; to the end.

    Else an attempt that is written meanwhile would be seen by neither. Called before any window is
    locked: a declaration locks many, in an order of its own. SQLite has one writer.
    """
    if connection.dialect.name == "postgresql":
        lock = func.pg_advisory_xact_lock_shared if shared else func.pg_advisory_xact_lock
        connection.execute(select(lock(func.hashtext("budgets and the attempts under way"))))


def last_attempt(connection: Connection) -> int:
    """Return the number (`seq`) of the newest attempt; none below it is written any more.

    Numbers are drawn before they are committed, so whoever writes attempts is waited for, and goes
    on at once: the lock goes with its savepoint.
    """
    point = connection.begin_nested()
    try:
        serialize_declarations(connection)
        return connection.execute(select(func.max(AttemptRow.seq))).scalar_one() or 0
    finally:
        point.rollback()
