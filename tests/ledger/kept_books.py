"""Books that a file's tests begin with, written by the product once and copied from then on."""

import copy
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, text

from ledger.orm import tables as orm

SEQUENCES = """
SELECT schemaname || '.' || sequencename, last_value FROM pg_sequences WHERE last_value IS NOT NULL
"""


class KeptBooks:
    """A copy for each name and kind of database: on SQLite a file, on PostgreSQL each table's rows.

    Each kind is filled by itself: what the product writes to one is never copied into the other.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[str, str], tuple[Any, Any]] = {}

    def fill(self, name: str, engine: Engine, make: Callable[[Engine], Any]) -> Any:
        """Return what `make(engine)` returned when it filled the first ledger of this name."""
        key = name, engine.dialect.name
        is_file = engine.dialect.name == "sqlite"
        if key not in self._made:
            made = make(engine)
            kept = self._keep_file(name, engine) if is_file else keep_rows(engine)
            self._made[key] = kept, copy.deepcopy(made)
            return made
        kept, made = self._made[key]
        if is_file:
            put_file(kept, engine)
        else:
            put_rows(kept, engine)
        return copy.deepcopy(made)

    def _keep_file(self, name: str, engine: Engine) -> Path:
        path = self._folder / f"{name}.db"
        with sqlite3.connect(str(engine.url.database)) as source, sqlite3.connect(path) as target:
            source.backup(target)
        source.close()
        target.close()
        return path


def put_file(kept: Path, engine: Engine) -> None:
    """Nobody has the ledger open: the engine's own connections end here."""
    engine.dispose()
    for ending in ("-wal", "-shm"):
        Path(f"{engine.url.database}{ending}").unlink(missing_ok=True)
    shutil.copyfile(kept, str(engine.url.database))


def keep_rows(engine: Engine) -> tuple[dict[str, bytes], list[tuple[str, int]]]:
    with engine.connect() as connection:
        cursor = raw_cursor(connection)
        rows = {}
        for table in orm.LedgerBase.metadata.sorted_tables:
            with cursor.copy(f"COPY {table.name} TO STDOUT (FORMAT BINARY)") as out:
                rows[table.name] = b"".join(map(bytes, out))
        sequences = connection.execute(text(SEQUENCES)).all()
    return rows, [(name, value) for name, value in sequences]


def put_rows(kept: tuple[dict[str, bytes], list[tuple[str, int]]], engine: Engine) -> None:
    """As they were, whatever would be done at an insert."""
    rows, sequences = kept
    with engine.begin() as connection:
        cursor = raw_cursor(connection)
        cursor.execute("SET LOCAL session_replication_role = replica")
        for name, content in rows.items():
            with cursor.copy(f"COPY {name} FROM STDIN (FORMAT BINARY)") as into:
                into.write(content)
        for name, value in sequences:
            cursor.execute("SELECT setval(%s::regclass, %s)", [name, value])


def raw_cursor(connection: Connection) -> Any:
    """psycopg's own: SQLAlchemy knows no COPY."""
    return connection.connection.cursor()
