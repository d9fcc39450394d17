"""Another value for any column, and whole rows: made from the columns' types alone."""

from datetime import date, timedelta
from typing import Any

from sqlalchemy import Column, Connection, Index, Row, Table, UniqueConstraint, func, select
from sqlalchemy.types import JSON, Boolean, Date, Float, Integer, LargeBinary, Numeric

from ledger.orm.types import WideInteger


def other(column: Column[Any], value: Any) -> Any:
    """What it does not hold: near by, as somebody who edits a figure would write it."""
    kind = column.type
    if isinstance(kind, JSON):
        return {**value, "edited": "1"} if isinstance(value, dict) else [*(value or ()), "edited"]
    if isinstance(kind, Boolean):
        return not value
    if isinstance(kind, Date):
        return date(2026, 1, 1) if value is None else value + timedelta(days=1)
    if isinstance(kind, LargeBinary):
        return b"edited" if not value else bytes([value[0] ^ 1, *value[1:]])
    if isinstance(kind, Integer | Float | Numeric | WideInteger):
        return 1 if value is None else value + 1
    return f"{value or ''}x"


def made_up(connection: Connection, table: Table) -> dict[str, Any]:
    """A row that the table takes."""
    row = {}
    for column in table.columns:
        if column.foreign_keys:
            (to,) = column.foreign_keys
            row[column.key] = connection.execute(select(func.max(to.column))).scalar_one()
        elif not (column.autoincrement is True and column.primary_key):
            row[column.key] = other(column, {} if _is_object(column) else None)
    return row


def copy_of(table: Table, row: Row[Any]) -> dict[str, Any]:
    """The row once more, under a key that is not taken yet but is as near as can be."""
    values = {column.key: row._mapping[column] for column in table.columns}
    for columns in _unique(table):
        column = [each_column for each_column in columns if not each_column.foreign_keys][-1]
        values[column.key] = _free(column, values[column.key])
    return values


def _unique(table: Table) -> list[list[Column[Any]]]:
    rules = [
        rule
        for rule in (*table.constraints, *table.indexes)
        if isinstance(rule, UniqueConstraint) or (isinstance(rule, Index) and rule.unique)
    ]
    return [list(rule.columns) for rule in (table.primary_key, *rules)]


def _free(column: Column[Any], value: Any) -> Any:
    if isinstance(column.type, Integer) and value is not None:
        return value + 10**6
    return other(column, value)


def _is_object(column: Column[Any]) -> bool:
    return isinstance(column.type, JSON) and column.key in ("metadata", "terms", "said", "tags")
