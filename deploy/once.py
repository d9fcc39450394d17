"""Values that are equal in every test, and that a test process therefore makes only once.

Two thirds of the work of starting a gateway are an empty ledger, migrated through every revision,
and the bundled prices, read from 3,000 rows of JSON.
"""

import contextlib
import fcntl
import functools
import importlib
import os
import shutil
import ssl
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import certifi
import psycopg
from sqlalchemy import Connection, Engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache

from ledger.database import make_engine, migrate, sqlite_url
from ledger.prices.rates import Price
from ledger.prices.start_prices import read_sources, store_start_prices
from ledger.seals.sealer import Sealer
from ledger.write_lock import turns_of

STATEMENTS = 3_000
LISTS = 8  # cached lists, each of 3,000 prices
SERVER_OWNER = "postgres"  # user of the tests' own servers, without a password
STARTED = "started_ledger"  # the database that others are copied from
_folders: list[Path] = []  # folders for made ledgers; the last one is used


def put_ledger(place: str | Path) -> str:
    """Create an empty, migrated SQLite ledger if there is none. Return its URL.

    A database on a server is left unchanged.
    """
    return _put(_make_migrated, place)


def put_started_ledger(place: str | Path) -> str:
    """Create the ledger of a host that was started once: bundled prices stored and sealed.

    Like `put_ledger`, but also fills an empty database on one of the tests' own servers.
    """
    target = make_url(place) if isinstance(place, str) else None
    if target is not None and target.username == SERVER_OWNER:
        _copy_started(target)
    return _put(_make_started, place)


def _copy_started(target: URL) -> None:
    """Replace a database without tables by a copy, because the migrations alone take 4 s."""
    how: dict[str, Any] = {"host": target.host, "port": target.port, "user": target.username}
    with psycopg.connect(**how, dbname=target.database) as connection:
        if connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").fetchone():
            return
    with psycopg.connect(**how, dbname="postgres", autocommit=True) as connection:
        copied = "STRATEGY file_copy" if connection.info.server_version >= 150_000 else ""
        asked = "SELECT 1 FROM pg_database WHERE datname = %s"
        if connection.execute(asked, [STARTED]).fetchone() is None:
            connection.execute(f"CREATE DATABASE {STARTED}_first")
            first = target.set(database=f"{STARTED}_first").render_as_string(hide_password=False)
            migrate(first)
            _start(first)
            connection.execute(f"ALTER DATABASE {STARTED}_first RENAME TO {STARTED}")
        connection.execute(f"DROP DATABASE {target.database}")
        connection.execute(f"CREATE DATABASE {target.database} TEMPLATE {STARTED} {copied}")


def _put(make: Callable[[], Path], place: str | Path) -> str:
    url = place if isinstance(place, str) else sqlite_url(place)
    target = make_url(url)
    path = Path(target.database or "")
    if target.get_backend_name() == "sqlite" and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(make(), path)
    return url


def remember(module: str, name: str) -> None:
    """Replace a module's function by a cached one: one call for each set of arguments."""
    holder = importlib.import_module(module)
    vars(holder)[name] = functools.cache(getattr(holder, name))


def remember_list(module: str, name: str) -> None:
    """Cache a function that takes one iterable and returns a list. Each call returns a copy."""
    holder = importlib.import_module(module)
    made = functools.lru_cache(maxsize=LISTS)(getattr(holder, name))
    vars(holder)[name] = lambda values: list(made(tuple(values)))


def remember_books() -> None:
    """Make `ledger.prices.stored` return one price book for the same prices and names.

    Sharing is safe, because nothing changes a price book.
    """
    stored = importlib.import_module("ledger.prices.stored")
    make, made = stored.PriceBook, LRUCache[Any, Any](LISTS)

    @functools.wraps(make)
    def find_or_make(prices: Iterable[Price], aliases: Mapping[str, str] | None = None) -> Any:
        listed = tuple(prices)
        key = tuple(map(id, listed)), tuple((aliases or {}).items())
        found = made.get(key)  # the prices are kept, so that their ids stay unique
        if found is None:
            found = made[key] = listed, make(listed, aliases)
        return found[1]

    vars(stored)["PriceBook"] = find_or_make


def share_adapters() -> None:
    """Make validators of route parameters once for all applications with the route."""
    field = importlib.import_module("fastapi._compat.v2").ModelField
    make, made = field.__post_init__, dict[Any, Any]()

    def find_or_make(self: Any) -> None:
        info = self.field_info  # its repr lacks the bounds, its metadata has them
        key = info.annotation, repr(info), repr(info.metadata), info.alias, repr(self.config)
        if key in made:
            self._type_adapter = made[key]
        else:
            make(self)
            made[key] = self._type_adapter

    field.__post_init__ = find_or_make


def share_authorities() -> None:
    """Load the certificates of all authorities once: each client takes 40 ms for them.

    Only contexts with the default certificates are shared. A context with another certificate file
    is made anew.
    """
    make, made = ssl.create_default_context, dict[tuple[str | None, ...], ssl.SSLContext]()

    @functools.wraps(make)
    def find_or_make(*of: Any, **how: Any) -> ssl.SSLContext:
        everybody = certifi.where(), os.environ.get("SSL_CERT_FILE")  # httpx may pass these
        if of or (how and how not in [{"cafile": file} for file in everybody]):
            return make(*of, **how)
        key = how.get("cafile"), os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        if key not in made:
            made[key] = make(**how)
        return made[key]

    vars(ssl)["create_default_context"] = find_or_make


def remember_what_passed(module: str, name: str) -> None:
    """Cache passed validations by a function that returns `None` or raises.

    The function takes a spec and a schema. Two thirds of the work for a page of charts is
    validating the same few hundred axes and marks.
    """
    holder = importlib.import_module(module)
    judge, passed = getattr(holder, name), dict[tuple[str, int], Any]()

    @functools.wraps(judge)
    def judge_once(spec: Any, schema: Any, *of: Any, **how: Any) -> Any:
        key = repr(spec), id(schema)  # the schema is kept, so that its id stays unique
        if key in passed:
            return None
        fault = judge(spec, schema, *of, **how)
        if fault is None:
            passed[key] = schema
        return fault

    vars(holder)[name] = judge_once


def share_migrations(module: str) -> None:
    """Copy an already migrated ledger instead of migrating each new SQLite ledger.

    Applies to modules that import the function after this call. An existing ledger is migrated as
    usual, and so is one at an older revision or with other scripts. `migrate.__wrapped__` always
    migrates.
    """
    holder = importlib.import_module(module)
    scripts = vars(holder)["_scripts"]

    @functools.wraps(migrate)
    def copy_or_migrate(url: str, revision: str = "head") -> None:
        kind, _, place = url.partition(":///")
        is_head = revision == "head" and vars(holder)["_scripts"] is scripts
        path = Path(place)
        if kind == "sqlite" and is_head and path.parent.is_dir() and not path.exists():
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                draft = shutil.copy(_make_migrated(), folder)
                with contextlib.suppress(FileExistsError):  # another process was faster
                    path.hardlink_to(draft)
            turns_of(path).touch(0o600)  # a writer leaves this file, too
        migrate(url, revision)

    vars(holder)["migrate"] = copy_or_migrate


@functools.cache
def _make_migrated() -> Path:
    return _made("migrated", migrate)


@functools.cache
def _make_started() -> Path:
    def make(url: str) -> None:
        put_ledger(url)
        _start(url)

    return _made("started", make)


def share_made(folder: Path) -> None:
    """Share ledgers with the other lanes: look for them in this folder and put new ones there."""
    _folders.append(folder)


def _made(name: str, make: Callable[[str], None]) -> Path:
    """Return the file of a ledger that lives as long as the process, or as all of its lanes."""
    if not _folders:
        _folders.append(Path(_own_folder().name))
    ledger = _folders[-1] / f"{name}.db"
    with ledger.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ledger.exists():
            with tempfile.TemporaryDirectory(dir=_folders[-1]) as draft:
                make(sqlite_url(Path(draft) / ledger.name))
                (Path(draft) / ledger.name).rename(ledger)
    return ledger


@functools.cache
def _own_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="breakeven-made-")


def _start(url: str) -> None:
    """Store and seal the bundled prices in a migrated ledger, as a host's first start."""
    engine, at_us = make_engine(url), time.time_ns() // 1000
    store_start_prices(engine, read_sources(()), actor="tests", at_us=at_us)
    while Sealer(engine).seal(at_us=at_us):
        pass
    engine.dispose()


def spare_flushes(module: str) -> None:
    """Let SQLite commit without flushing to disk, because tests have no power failures.

    A killed process loses nothing by this. `tests/chaos/flushes.py` checks from outside that
    commits are on disk, with a program that does not use this module.
    """
    holder = importlib.import_module(module)
    begin, reading = vars(holder)["_begin_sqlite"], vars(holder)["_READING"]

    def begin_sqlite(connection: Connection) -> None:
        if not connection.get_execution_options().get(reading):
            connection.exec_driver_sql("PRAGMA synchronous=OFF")
        begin(connection)

    vars(holder)["_begin_sqlite"] = begin_sqlite


def share_statements(module: str) -> None:
    """Let all engines that the module makes share their compiled statements.

    SQLAlchemy keeps compiled statements by engine and dialect object. Each test has its own
    database and therefore its own engine, which would compile the same statements again.
    """
    holder = importlib.import_module(module)
    create = holder.create_engine
    shared: LRUCache[Any, Any] = LRUCache(STATEMENTS)

    @functools.wraps(create)
    def create_sharing(*of: Any, **how: Any) -> Engine:
        options = {**how.pop("execution_options", {}), "compiled_cache": shared}
        engine: Engine = create(*of, execution_options=options, **how)
        return engine

    vars(holder)["create_engine"] = create_sharing
    for name, method in (("__eq__", _is_alike), ("__hash__", _hash_kind)):
        setattr(DefaultDialect, name, method)


def _is_alike(dialect: DefaultDialect, other: object) -> bool:
    """Return whether both dialects compile alike: same kind, driver and server version."""
    return isinstance(other, DefaultDialect) and _kind_of(dialect) == _kind_of(other)


def _hash_kind(dialect: DefaultDialect) -> int:
    return hash(type(dialect))


def _kind_of(dialect: DefaultDialect) -> tuple[object, ...]:
    if dialect.name == "sqlite":  # one version per process, known before connecting
        return type(dialect), dialect.paramstyle
    return type(dialect), dialect.paramstyle, getattr(dialect, "server_version_info", None)


def register() -> None:
    """Cache values that are parsed from text, and share the other values of this module."""
    remember("ledger.prices.bundled", "seed_from_map")
    remember("ledger.prices.modellimits", "limits_from_map")
    remember("ledger.writing.repository", "WriterStatements")
    remember("backends.engine.tinytokenizer", "train")
    for module in ("ledger.prices.stored", "ledger.prices.start_prices"):
        remember_list(module, "decode_prices")
    remember_books()
    share_adapters()
    share_authorities()
    share_statements("ledger.database")
    spare_flushes("ledger.database")
    share_migrations("ledger.database")
