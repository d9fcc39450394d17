"""Locks between declarations of budgets and the code that moves their money.

A declaration counts what a window has seen, which takes seconds in a month of many attempts. A
declaring process therefore first waits for its turn, and counts attempts that cannot change any
more (`last_attempt`) while others go on. Then it locks out all others, and counts the rest.
"""

from sqlalchemy import Connection, func, select

from ledger.orm.books import AttemptRow


def await_turn(connection: Connection) -> None:
    """Wait until no other process declares budgets, and lock until the transaction ends.

    Spending goes on.
    """
    if connection.dialect.name == "postgresql":
        turn = func.hashtext("the turn to declare budgets")
        connection.execute(select(func.pg_advisory_xact_lock(turn)))


def serialize_declarations(connection: Connection, *, shared: bool = False) -> None:
    """Wait for declarations to end, and lock them out until the transaction ends.

    Without `shared`, other changes of money are locked out as well. Otherwise a concurrent attempt
    would be counted by neither side. Call this before any window is locked: a declaration locks
    many windows, in its own order. SQLite has one writer.
    """
    if connection.dialect.name == "postgresql":
        lock = func.pg_advisory_xact_lock_shared if shared else func.pg_advisory_xact_lock
        connection.execute(select(lock(func.hashtext("budgets and the attempts under way"))))


def last_attempt(connection: Connection) -> int:
    """Return the highest attempt number (`seq`) below which no attempt can still be added.

    Numbers are drawn before their commit, so this waits for running writers of attempts. The lock
    is released with the savepoint.
    """
    point = connection.begin_nested()
    try:
        serialize_declarations(connection)
        return connection.execute(select(func.max(AttemptRow.seq))).scalar_one() or 0
    finally:
        point.rollback()
