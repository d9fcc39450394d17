"""Lends one PostgreSQL database to one test after the other: `conftest.py` takes it from here."""

from typing import Any

import psycopg

from ledger.orm import tables as orm

ALONE = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_get_activity(NULL)
WHERE datid = (SELECT oid FROM pg_database WHERE datname = current_database())
AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
OURS = 16384  # the first number of what PostgreSQL did not make itself
CATALOGUES = {
    "pg_attribute": "attrelid", "pg_attrdef": "adrelid", "pg_index": "indexrelid",
    "pg_constraint": "oid", "pg_trigger": "oid", "pg_proc": "oid", "pg_namespace": "oid",
    "pg_type": "oid", "pg_rewrite": "oid", "pg_policy": "oid", "pg_db_role_setting": "setdatabase",
}  # fmt: skip
# Of a table what stays when its rows are taken away: that gives it a file, and a row here, anew.
TABLES = """
SELECT 'pg_class:' || count(*) || ':' || coalesce(sum(hashtext(concat_ws(
    ' ', relname, relnamespace, reltype, relowner, relkind, relpersistence, relnatts, relchecks,
    relhastriggers, relrowsecurity, relforcerowsecurity, relreplident, relacl::text,
    reloptions::text
))::bigint), 0)
FROM pg_class WHERE oid >= 16384
"""
SHAPE = " UNION ALL ".join((TABLES, *(
    f"SELECT '{name}:' || count(*) || ':' || coalesce(sum(xmin::text::bigint), 0) "
    f"FROM {name} WHERE {number} >= {OURS}"
    for name, number in CATALOGUES.items()
)))  # fmt: skip
FILLED = "SELECT name FROM unnest(%s::text[]) AS name WHERE pg_relation_size(name::regclass) > 0"
# What is known of rows that are gone would change how the next test's are read.
STATISTICS = f"DELETE FROM pg_statistic WHERE starelid >= {OURS}"
SEQUENCES = """
SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)
FROM pg_sequences WHERE last_value IS NOT NULL
"""


class LentDatabase:
    """One migrated database, which one test after the other finds empty, for a user of its own.

    A database for each takes twenty times as long, and a new connection for what is done between
    two tests as long as that. Whoever still writes as an earlier user finds that there is none;
    whoever changed more than rows, as the catalogue tells, has had the last of it.
    """

    def __init__(self, server: Any, template: str) -> None:
        self._server, self._template = server, template
        self._user, self._shape = "", ""
        self._own: psycopg.Connection | None = None  # in the database, as long as it is lent

    def lend(self) -> str:
        self._server.count += 1
        user = f"test_{self._server.count}"
        if self._own is None:
            name = self._server.create("", self._template)
            self._own = self._connected(name)
            self._own.execute(f"CREATE ROLE {user} SUPERUSER LOGIN")
            self._shape = shape_of(self._own)
        else:
            self._own.execute(f"ALTER ROLE {self._user} RENAME TO {user}")
        self._user = user
        address: str = self._server.url(self._own.info.dbname)
        return address.replace("postgres@", f"{user}@")

    def take_back(self) -> None:
        assert self._own is not None, "it was lent"
        try:
            self._own.execute(ALONE, prepare=True)
            same = shape_of(self._own) == self._shape
            if same:
                clear(self._own)
        except psycopg.Error:
            same = False
        if not same:
            self.end()

    def end(self) -> None:
        if self._own is not None:
            name = self._own.info.dbname
            self._own.close()
            self._own = None
            self._server.drop(name)
            with psycopg.connect(self._server.admin, autocommit=True) as connection:
                connection.execute(f"DROP ROLE {self._user}")

    def _connected(self, name: str) -> psycopg.Connection:
        address = self._server.admin.replace("dbname=postgres", f"dbname={name}")
        return psycopg.connect(address, autocommit=True, options="-c lock_timeout=5s")


def shape_of(connection: psycopg.Connection) -> str:
    """Not what is in the tables, but what they are, mostly by who wrote the catalogue's rows."""
    return " ".join(row[0] for row in connection.execute(SHAPE, prepare=True))


def clear(connection: psycopg.Connection) -> None:
    names = [table.name for table in orm.LedgerBase.metadata.sorted_tables]
    filled = ", ".join(row[0] for row in connection.execute(FILLED, [names], prepare=True))
    if filled:
        connection.execute(f"TRUNCATE {filled} CASCADE")
    connection.execute(SEQUENCES, prepare=True)
    connection.execute(STATISTICS, prepare=True)
