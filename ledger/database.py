"""Engines for the ledger's two databases, opened so that a commit means durable.

SQLite: write-ahead log, `synchronous=FULL`, foreign keys on, every transaction begins IMMEDIATE so
that reading before writing is safe, but for `reading`, which neither takes nor awaits the write
lock. PostgreSQL: as the server is configured, and `check_durable` refuses to bill on one that
acknowledges commits before they are on disk.
What only reads is read-only on both, enforced by the database and not by good manners.
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
KEPT_CACHE_KIB = 4_096  # of a connection that stays open: what it ever held it holds for good
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
    """A database that the ledger must not be kept in, or cannot be reached."""


class NotDurable(DatabaseError):
    """The server may lose a commit that it acknowledged."""


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path.absolute()}"


def make_engine(url: str, *, pool_size: int = 5, keep_open: bool = False) -> Engine:
    """For reading and writing. Connections are checked before use: a server may have restarted.

    `keep_open` keeps SQLite's connections between transactions, for a process that writes many:
    opening costs as much as writing some requests, and the last one to close checkpoints the log.
    The last one used is used next: what others write in between empties a connection's cache.
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
    """A connection of a process that also writes, to read one state of the books with.

    Whoever writes is not held up, and does not hold up.
    """
    connection = engine.connect()
    if engine.dialect.name == "sqlite":
        return connection.execution_options(**{_READING: True})
    # Else each statement sees its own state, and what another host commits between two is torn.
    return connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def is_declared(engine: Engine) -> bool:
    """Return whether a configuration was declared to the ledger: some host has started on it.

    Written in SQL: commands that only need this do not pay for the import of the tables' classes.
    Raises: `DBAPIError` where the ledger has no tables, as one of another version, or is away.
    """
    with engine.connect() as connection:
        return connection.execute(text("SELECT 1 FROM config_versions")).first() is not None


def open_readonly(url: str) -> Engine:
    """For the dashboard and reports: the database itself refuses every write."""
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
    """Return what a column of JSON holds: as `json.loads`, in a tenth of its time.

    What that reads beyond JSON (a lone surrogate, a number that is none) may stand in old rows.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        return json.loads(text)


def read_rows(engine: Engine, query: Select[*tuple[Any, ...]]) -> Sequence[Row[*tuple[Any, ...]]]:
    """All rows of one query."""
    with reading(engine) as connection:
        return connection.execute(query).all()


def read_row(engine: Engine, query: Select[*tuple[Any, ...]]) -> Row[*tuple[Any, ...]] | None:
    """The one row of a query, if it has any."""
    with reading(engine) as connection:
        return connection.execute(query).one_or_none()


def read_value(engine: Engine, query: Select[T]) -> T | None:
    """The one value of a query, if it has any."""
    with reading(engine) as connection:
        return connection.execute(query).scalar_one_or_none()


def in_groups(values: Sequence[V], size: int | None = None) -> Iterator[Sequence[V]]:
    """Yield the values in groups of `size`, else of as many as a statement can well name."""
    most = size or NAMED_AT_ONCE
    return (values[start : start + most] for start in range(0, len(values), most))


def write_alone(engine: Engine, statement: UpdateBase) -> int:
    """One statement in a transaction of its own: how many rows it updated or deleted."""
    with engine.begin() as connection:
        return connection.execute(statement).rowcount


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """A connection of `open_readonly` that sees one state of the books, however long it reads."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN")  # the driver itself begins with writes only
        else:
            connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


def limit_time(connection: Connection, limit_s: float, ended: Callable[[], bool]) -> None:
    """End what the connection's transaction runs from here on, as a database that is away does.

    `ended` is asked while SQLite works, in the thread that does; PostgreSQL counts for itself.
    """
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        driver.set_progress_handler(ended, SQLITE_STEPS)
    else:
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {int(limit_s * 1000)}")


def database_us(connection: Connection) -> int:
    """Return the database's clock in microseconds, which all hosts share."""
    return int(connection.execute(_CLOCK[connection.dialect.name]).scalar_one())


def check_durable(engine: Engine) -> None:
    """Raise `NotDurable` when a commit could be lost; an operator may choose not to ask."""
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
    """Bring the schema up to `revision`; concurrent callers wait for one another.

    One that a later version made is left as it is: while hosts are replaced one by one, those of
    the version before work on it, and start on it again when they fall. Of a schema that says that
    it is up to date nothing else is asked: Alembic costs more than most commands.
    """
    if revision != "head" or not _is_up_to_date(url):
        # Only a process that migrates pays for the import, a ninth of what a worker takes to start.
        command: Any = importlib.import_module("alembic.command")
        command.upgrade(_alembic(url), revision)


def schema_of(url: str) -> str | None:
    """The revision that the schema is of; None: there is no ledger."""
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
    """Return the newest revision of the schema that this version knows."""
    found = (_scripts() / "versions").glob("[0-9]*.py")
    return max(path.name.partition("_")[0] for path in found)


def is_unavailable(error: DBAPIError) -> bool:
    """Whether the statement failed because the database was not there, not because it was wrong.

    A locked SQLite file and a full disk count as away: the same statement may succeed later.
    """
    return error.connection_invalidated or isinstance(error, OperationalError)


def is_momentary(error: DBAPIError) -> bool:
    """Whether others were in the statement's way: on its connection the same may pass at once."""
    state = getattr(error.orig, "sqlstate", None)
    return not error.connection_invalidated and state in _IN_THE_WAY


def _alembic(url: str) -> Any:
    """Arguments of its commands."""
    config: Any = importlib.import_module("alembic.config").Config()
    config.set_main_option("script_location", str(_scripts()).replace("%", "%%"))
    config.attributes["url"] = _with_driver(url).render_as_string(hide_password=False)
    return config


def _is_up_to_date(url: str) -> bool:
    """Return whether the schema is of this version, or of a later one."""
    found = schema_of(url)
    return found is not None and found.isdecimal() and found >= known_schema()


def _scripts() -> Path:
    """In the wheel the migrations lie beside this file, in the repository beside the package."""
    packaged = _HERE / "migrations"
    return packaged if packaged.is_dir() else _HERE.parent / "migrations"


def _with_driver(url: str) -> URL:
    try:
        target = make_url(url)
    except (ArgumentError, ValueError):  # whose words may quote a part of the password
        raise DatabaseError(
            "the ledger's address cannot be read: postgresql://user:password@host/name, with"
            " whatever is no letter or digit of a password percent-encoded"
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
