"""Partial indexes, whose condition differs between databases.

SQLAlchemy imports the dialect of every database for which an index has a condition. Conditions are
needed only to make or compare tables, which no process of a host does. The other database's dialect
would be one thirtieth of what a process imports.
"""

from sqlalchemy import Index, MetaData, text

_CONDITION = "where"  # in an index's `info`: SQLite's condition, PostgreSQL's


def partial_index(name: str, *columns: str, where: str, postgresql: str | None = None) -> Index:
    """Return an index of the rows that meet `where`; `postgresql` is PostgreSQL's spelling."""
    return Index(name, *columns, info={_CONDITION: (where, postgresql or where)})


def state_conditions(metadata: MetaData) -> MetaData:
    """Set the conditions of all partial indexes, before tables are made or compared."""
    for table in metadata.tables.values():
        for index in table.indexes:
            if (conditions := index.info.get(_CONDITION)) is not None:
                sqlite, postgresql = conditions
                index.dialect_kwargs["sqlite_where"] = text(sqlite)
                index.dialect_kwargs["postgresql_where"] = text(postgresql)
    return metadata
