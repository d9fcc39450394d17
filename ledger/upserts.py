"""INSERT statements with ON CONFLICT clauses, for both databases."""

import importlib
from typing import Any

from sqlalchemy import Connection, Dialect

from ledger.orm.base import LedgerBase


def insert_of(dialect: Dialect) -> Any:
    """Return the dialect's INSERT constructor, which supports ON CONFLICT.

    The other dialect is not imported: the import takes a twentieth of a command's run time.
    """
    return importlib.import_module(f"sqlalchemy.dialects.{dialect.name}").insert


def insert_into(connection: Connection, table: type[LedgerBase]) -> Any:
    """Return an INSERT statement in the connection's dialect."""
    return insert_of(connection.dialect)(table)
