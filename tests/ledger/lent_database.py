"""Lends one PostgreSQL database to one test after the other: `conftest.py` takes it from here."""

from typing import Any

import psycopg

from ledger.orm import tables as orm

ALONE = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
CATALOGUES = (
    "pg_class", "pg_attribute", "pg_attrdef", "pg_index", "pg_constraint", "pg_trigger", "pg_proc",
    "pg_namespace", "pg_type", "pg_rewrite", "pg_policy", "pg_db_role_setting",
)  # fmt: skip
SHAPE = " UNION ALL ".join(
    f"SELECT '{name}:' || count(*) || ':' || coalesce(sum(xmin::text::bigint), 0) FROM {name}"
    for name in CATALOGUES
)
# What is known of rows that are gone would change how the next test's are read.
STATISTICS = "DELETE FROM pg_statistic WHERE starelid >= 16384"
SEQUENCES = """
SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)
FROM pg_sequences WHERE last_value IS NOT NULL
"""


class LentDatabase:
    """One migrated database, which one test after the other finds empty, under a name of its own.

    A database for each takes twenty times as long. Whoever still writes under an earlier name finds
    none; whoever changed more than rows, as the catalogue tells, has had the last of it.
    """

    def __init__(self, server: Any, template: str) -> None:
        self._server, self._template = server, template
        self._name, self._shape = "", ""

    def lend(self) -> str:
        self._server.count += 1
        name = f"test_{self._server.count}"
        if self._name:
            with psycopg.connect(self._server.admin, autocommit=True) as connection:
                connection.execute(f"ALTER DATABASE {self._name} RENAME TO {name}")
        else:
            self._server.create(name, self._template)
            with self._connected(name) as connection:
                self._shape = shape_of(connection)
        self._name = name
        return self._server.url(name)

    def take_back(self) -> None:
        try:
            with self._connected(self._name) as connection:
                connection.execute(ALONE)
                same = shape_of(connection) == self._shape
                if same:
                    clear(connection)
                    self._shape = shape_of(connection)
        except psycopg.Error:
            same = False
        if not same:
            self.end()

    def end(self) -> None:
        if self._name:
            self._server.drop(self._name)
            self._name = ""

    def _connected(self, name: str) -> psycopg.Connection:
        address = self._server.admin.replace("dbname=postgres", f"dbname={name}")
        return psycopg.connect(address, autocommit=True, options="-c lock_timeout=5s")


def shape_of(connection: psycopg.Connection) -> str:
    """By who wrote the catalogue's rows last: not what is in the tables, but what they are."""
    return " ".join(row[0] for row in connection.execute(SHAPE))


def clear(connection: psycopg.Connection) -> None:
    names = [table.name for table in orm.LedgerBase.metadata.sorted_tables]
    asked = (f"SELECT '{name}' WHERE EXISTS (SELECT FROM {name})" for name in names)
    filled = ", ".join(row[0] for row in connection.execute(" UNION ALL ".join(asked)))
    if filled:
        connection.execute(f"TRUNCATE {filled} CASCADE")
    connection.execute(SEQUENCES)
    connection.execute(STATISTICS)
