"""Tells whether the books may have changed since they were read, without reading them."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Engine

WAIT_S = 0.05  # for a lock that nobody keeps; then the books are read


class CommitWatch:
    """Watches one database.

    SQLite counts for each connection what all others commit. PostgreSQL has nothing as cheap: what
    its books say is always read.
    """

    def __init__(self, engine: Engine) -> None:
        self._path = engine.url.database if engine.dialect.name == "sqlite" else None
        self._connection: sqlite3.Connection | None = None

    def version(self) -> int | None:
        """Return a number that is another one after any commit; None: not known.

        What is read afterwards is of this version or newer.
        """
        if self._path is None:
            return None
        with suppress(sqlite3.Error):
            if self._connection is None:
                self._connection = _connect(self._path)
            with closing(self._connection.execute("PRAGMA data_version")) as rows:
                return int(rows.fetchone()[0])
        self.close()
        return None

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _connect(path: str) -> sqlite3.Connection:
    address = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
    return sqlite3.connect(address, uri=True, timeout=WAIT_S, check_same_thread=False)
