"""Declarations of budgets and all that moves their money keep out of each other's way."""

from sqlalchemy import Connection, func, select


def serialize_declarations(connection: Connection, *, shared: bool = False) -> None:
    """Wait until nobody declares budgets, or (not `shared`) moves their money; to the end.

    Else an attempt that is written meanwhile would be seen by neither. Called before any window is
    locked: a declaration locks many, in an order of its own. SQLite has one writer.
    """
    if connection.dialect.name == "postgresql":
        lock = func.pg_advisory_xact_lock_shared if shared else func.pg_advisory_xact_lock
        connection.execute(select(lock(func.hashtext("budgets and the attempts under way"))))
