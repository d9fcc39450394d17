"""INSERT statements that say what happens where a row of the same key is there already."""

import importlib
from typing import Any

from sqlalchemy import Connection

from ledger.orm.base import LedgerBase


def insert_into(connection: Connection, table: type[LedgerBase]) -> Any:
    """Return an INSERT of the connection's dialect, which knows ON CONFLICT.

    The other database's dialect stays unread: to import it takes a twentieth of a command's time.
    """
    dialect = importlib.import_module(f"sqlalchemy.dialects.{connection.dialect.name}")
    return dialect.insert(table)
