"""Indexes of a part of a table's rows, whose condition each database spells for itself.

SQLAlchemy imports the dialect of each database that an index has a condition for. Only who makes
or compares tables needs the conditions; no process of a host does, and the dialect of the other
database would be a thirtieth of what it imports.
"""

from sqlalchemy import Index, MetaData, text

_CONDITION = "where"  # in an index's `info`: SQLite's condition, PostgreSQL's


def partial_index(name: str, *columns: str, where: str, postgresql: str | None = None) -> Index:
    """Return an index of the rows that meet `where`; `postgresql`: how PostgreSQL spells it."""
    return Index(name, *columns, info={_CONDITION: (where, postgresql or where)})


def state_conditions(metadata: MetaData) -> MetaData:
    """Tell SQLAlchemy the conditions of all partial indexes, before it makes or compares them."""
    for table in metadata.tables.values():
        for index in table.indexes:
            if (conditions := index.info.get(_CONDITION)) is not None:
                sqlite, postgresql = conditions
                index.dialect_kwargs["sqlite_where"] = text(sqlite)
                index.dialect_kwargs["postgresql_where"] = text(postgresql)
    return metadata
