"""INSERT statements that say what happens where a row of the same key is there already."""

import importlib
from typing import Any

from sqlalchemy import Connection, Dialect

from ledger.orm.base import LedgerBase


def insert_of(dialect: Dialect) -> Any:
    """Return what makes the dialect's INSERT, which knows ON CONFLICT.

    The other database's dialect stays unread: to import it takes a twentieth of a command's time.
    """
    return importlib.import_module(f"sqlalchemy.dialects.{dialect.name}").insert


def insert_into(connection: Connection, table: type[LedgerBase]) -> Any:
    """Return an INSERT of the connection's dialect."""
    return insert_of(connection.dialect)(table)
