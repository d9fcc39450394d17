"""Engines for the ledger's two databases, opened so that a commit is durable.

SQLite: write-ahead log, `synchronous=FULL`, foreign keys on. Every transaction begins IMMEDIATE, so
that reading before writing is safe; `reading` is the exception and neither takes nor awaits the
write lock. PostgreSQL: as the server is configured. `check_durable` refuses a server that
acknowledges commits before they are on disk. Both databases enforce read-only access for readers.
"""

import importlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

import msgspec
from sqlalchemy import (
    Connection,
    Engine,
    Row,
    Select,
    UpdateBase,
    create_engine,
    event,
    inspect,
    text,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.pool import NullPool, QueuePool

from ledger.write_lock import acquire_turn, turns_of

URL_VARIABLE = "BREAKEVEN_LEDGER_URL"  # where processes of a host are told the address
BUSY_TIMEOUT_MS = 10_000
TURN_LIMIT_S = 1.0  # as long as some batches of a backlog
CONNECT_TIMEOUT_S = 5
CACHE_KIB = 65_536  # SQLite: a history's indexes stay in memory while it is written
KEPT_CACHE_KIB = 4_096  # page cache of a kept connection, which never shrinks
KEPT_STATEMENTS = 24  # prepared by a connection: lists of ids make many of them, large ones
SQLITE_STEPS = 20_000  # instructions between two looks at the clock: well under a millisecond
NAMED_AT_ONCE = 500  # values in the list of one statement
_IN_THE_WAY = frozenset({"40001", "40P01"})  # a serialization failure, a deadlock
_CLOCK = {
    "postgresql": text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"),
    "sqlite": text("SELECT CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"),
}
_READING = "breakeven_reading"
KEPT: dict[str, Any] = {"poolclass": QueuePool, "pool_use_lifo": True}
_HERE = Path(__file__).resolve().parent
T = TypeVar("T")
V = TypeVar("V")


class DatabaseError(Exception):
    """A database that cannot be reached, or in which the ledger must not be kept."""


class NotDurable(DatabaseError):
    """A server that may lose a commit that it acknowledged."""


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path.absolute()}"


def make_engine(url: str, *, pool_size: int = 5, keep_open: bool = False) -> Engine:
    """Return an engine for reading and writing that checks connections before use.

    `keep_open` keeps SQLite's connections open between transactions, for a process that writes
    often: opening costs as much as writing some requests, and the last connection to close
    checkpoints the log. The most recently used connection is used next, because writes of others
    empty a connection's cache.
    """
    target = _with_driver(url)
    if target.get_backend_name() == "sqlite":
        engine = create_engine(
            target,
            json_deserializer=read_json,
            connect_args={
                "timeout": BUSY_TIMEOUT_MS / 1000,
                "cached_statements": KEPT_STATEMENTS,
            },
            **(KEPT if keep_open else {"poolclass": NullPool}),
        )
        cache_kib = KEPT_CACHE_KIB if keep_open else CACHE_KIB
        event.listen(engine, "connect", partial(_open_sqlite, cache_kib))
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    if target.get_backend_name() != "postgresql":
        raise DatabaseError(
            f"the ledger is kept in SQLite or PostgreSQL, not `{target.drivername}`"
        )
    return create_engine(
        target,
        json_deserializer=read_json,
        pool_pre_ping=True,
        pool_size=pool_size,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "breakeven"},
    )


def reading(engine: Engine) -> Connection:
    """Return a connection that reads one state of the ledger, for a process that also writes.

    The connection does not block writers, and writers do not block it.
    """
    connection = engine.connect()
    if engine.dialect.name == "sqlite":
        return connection.execution_options(**{_READING: True})
    # By default each statement sees its own state, and a commit between two makes results disagree.
    return connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def is_declared(engine: Engine) -> bool:
    """Return whether a configuration was declared to the ledger; each host declares its own.

    The query is plain SQL, so that commands that need only this do not import the table classes.
    Raises `DBAPIError` if the ledger has no tables or the database is unavailable.
    """
    with engine.connect() as connection:
        return connection.execute(text("SELECT 1 FROM config_versions")).first() is not None


def open_readonly(url: str) -> Engine:
    """Return an engine for the dashboard and reports; the database refuses every write."""
    target = _with_driver(url)
    if target.get_backend_name() != "sqlite":
        return create_engine(
            target,
            json_deserializer=read_json,
            pool_pre_ping=True,
            connect_args={
                "connect_timeout": CONNECT_TIMEOUT_S,
                # Compiling a page's statement takes longer than running it.
                "options": "-c default_transaction_read_only=on -c jit=off",
            },
        )
    path = Path(target.database or "")

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode=ro",
            uri=True,
            timeout=BUSY_TIMEOUT_MS / 1000,
            check_same_thread=False,
        )

    return create_engine(
        "sqlite://", creator=connect, json_deserializer=read_json, poolclass=NullPool
    )


def read_json(text: str | bytes) -> Any:
    """Return the decoded value of a JSON column, in a tenth of the time of `json.loads`.

    Old rows may hold what only `json.loads` accepts: a lone surrogate, `NaN`. They fall back to it.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        return json.loads(text)


def read_rows(engine: Engine, query: Select[*tuple[Any, ...]]) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return all rows of one query."""
    with reading(engine) as connection:
        return connection.execute(query).all()


def read_row(engine: Engine, query: Select[*tuple[Any, ...]]) -> Row[*tuple[Any, ...]] | None:
    """Return the only row of a query, or `None` if there is none."""
    with reading(engine) as connection:
        return connection.execute(query).one_or_none()


def read_value(engine: Engine, query: Select[T]) -> T | None:
    """Return the only value of a query, or `None` if there is none."""
    with reading(engine) as connection:
        return connection.execute(query).scalar_one_or_none()


def in_groups(values: Sequence[V], size: int | None = None) -> Iterator[Sequence[V]]:
    """Yield the values in groups of `size`, by default the most that one statement may name."""
    most = size or NAMED_AT_ONCE
    return (values[start : start + most] for start in range(0, len(values), most))


def write_alone(engine: Engine, statement: UpdateBase) -> int:
    """Run one statement in its own transaction. Return how many rows it updated or deleted."""
    with engine.begin() as connection:
        return connection.execute(statement).rowcount


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """Yield a connection of `open_readonly` that sees one state of the ledger throughout."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN")  # the driver itself begins with writes only
        else:
            connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


def limit_time(connection: Connection, limit_s: float, ended: Callable[[], bool]) -> None:
    """Limit the run time of the connection's transaction from here on.

    SQLite calls `ended` during its work, in the same thread, and stops once it returns true.
    PostgreSQL applies `limit_s` to each statement. Both raise what an unavailable database raises.
    """
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        driver.set_progress_handler(ended, SQLITE_STEPS)
    else:
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {int(limit_s * 1000)}")


def database_us(connection: Connection) -> int:
    """Return the database's clock, which all hosts share, in microseconds."""
    return int(connection.execute(_CLOCK[connection.dialect.name]).scalar_one())


def check_durable(engine: Engine) -> None:
    """Raise `NotDurable` if the server could lose a commit. Operators may disable the check."""
    if engine.dialect.name == "sqlite":
        with reading(engine) as connection:
            mode = connection.execute(text("PRAGMA journal_mode")).scalar_one()
            level = connection.execute(text("PRAGMA synchronous")).scalar_one()
        if mode != "wal" or level < 2:
            raise NotDurable(f"SQLite: journal_mode={mode}, synchronous={level}; wal and 2 needed")
        return
    with reading(engine) as connection:
        faults = [
            f"{name}={value}"
            for name in ("fsync", "full_page_writes", "synchronous_commit")
            if (value := connection.execute(text(f"SHOW {name}")).scalar_one()) == "off"
        ]
    if faults:
        raise NotDurable(f"PostgreSQL may lose acknowledged commits: {', '.join(faults)}")


def migrate(url: str, revision: str = "head") -> None:
    """Upgrade the schema to `revision`. Concurrent callers wait for one another.

    A schema of a later version is left as it is: during a rolling update, hosts of the earlier
    version work on it and may restart on it. A schema that is up to date is not passed to Alembic,
    whose import takes longer than most commands.
    """
    if revision != "head" or not _is_up_to_date(url):
        # Imported only to migrate: the import takes a ninth of a worker's start.
        command: Any = importlib.import_module("alembic.command")
        command.upgrade(_alembic(url), revision)


def schema_of(url: str) -> str | None:
    """Return the schema's revision, or `None` if there is no ledger."""
    engine = make_engine(url)
    try:
        with reading(engine) as connection:
            if not inspect(connection).has_table("alembic_version"):
                return None
            found = connection.execute(text("SELECT version_num FROM alembic_version"))
            return cast("str | None", found.scalar())
    finally:
        engine.dispose()


def known_schema() -> str:
    """Return the newest schema revision that this version knows."""
    found = (_scripts() / "versions").glob("[0-9]*.py")
    return max(path.name.partition("_")[0] for path in found)


def is_unavailable(error: DBAPIError) -> bool:
    """Return whether a statement failed because the database was unavailable.

    A locked SQLite file and a full disk count as unavailable: the same statement may succeed later.
    """
    return error.connection_invalidated or isinstance(error, OperationalError)


def is_momentary(error: DBAPIError) -> bool:
    """Return whether a conflict with others caused the error; a retry may succeed at once."""
    state = getattr(error.orig, "sqlstate", None)
    return not error.connection_invalidated and state in _IN_THE_WAY


def _alembic(url: str) -> Any:
    """Return the configuration that Alembic's commands take."""
    config: Any = importlib.import_module("alembic.config").Config()
    config.set_main_option("script_location", str(_scripts()).replace("%", "%%"))
    config.attributes["url"] = _with_driver(url).render_as_string(hide_password=False)
    return config


def _is_up_to_date(url: str) -> bool:
    """Return whether the schema is of this version or a later one."""
    found = schema_of(url)
    return found is not None and found.isdecimal() and found >= known_schema()


def _scripts() -> Path:
    """Return the folder of migrations: in this folder (wheel) or next to the package."""
    packaged = _HERE / "migrations"
    return packaged if packaged.is_dir() else _HERE.parent / "migrations"


def _with_driver(url: str) -> URL:
    try:
        target = make_url(url)
    except (ArgumentError, ValueError):  # whose words may quote a part of the password
        raise DatabaseError(
            "the ledger's address is invalid: write postgresql://user:password@host/name, and "
            "percent-encode all characters of the password except letters and digits"
        ) from None
    if target.drivername in ("postgresql", "postgres"):
        return target.set(drivername="postgresql+psycopg")
    return target


def _open_sqlite(cache_kib: int, connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout={BUSY_TIMEOUT_MS}",
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        f"cache_size=-{cache_kib}",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    reads = bool(connection.get_execution_options().get(_READING))
    connection.exec_driver_sql(f"PRAGMA query_only={int(reads)}")  # a kept connection may do both
    if reads:
        connection.exec_driver_sql("BEGIN")
        return
    name = connection.engine.url.database
    alone = not name or name == ":memory:"
    with nullcontext() if alone else acquire_turn(turns_of(Path(name or "")), TURN_LIMIT_S):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
