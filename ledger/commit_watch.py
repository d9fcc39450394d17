"""Cheap detection of whether the database may have changed since it was last read."""

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from sqlalchemy import Engine

from ledger.file_watch import FileWatch

WAIT_S = 0.05  # timeout of a short-held lock; after it the database is read
SAME_TICK_NS = 100_000_000  # a file's time is coarse: two writes so close may have the same one


class _FileState(NamedTuple):
    """Size, inode and modification time of a file; zeros if there is no file."""

    bytes: int
    inode: int
    written_ns: int


class CommitWatch:
    """A detector of commits to one database.

    SQLite counts, for each connection, the commits of all others. PostgreSQL has no check as cheap,
    so its data always counts as changed.
    """

    def __init__(self, engine: Engine) -> None:
        self._path = engine.url.database if engine.dialect.name == "sqlite" else None
        self._connection: sqlite3.Connection | None = None
        self._files: tuple[_FileState, ...] | None = None  # before the last look, if they tell
        # A thread may still run a query after its caller was cancelled: SQLite crashes if the
        # connection is closed during a query.
        self._using = threading.RLock()

    def version(self) -> int | None:
        """Return a number that changes with any commit, or `None` if it is not known.

        Data that is read afterwards is of this version or newer.
        """
        if self._path is None:
            return None
        with self._using:
            self._files = _settled_files(self._path)
            with suppress(sqlite3.Error):
                if self._connection is None:
                    self._connection = _connect(self._path)
                with closing(self._connection.execute("PRAGMA data_version")) as rows:
                    return int(rows.fetchone()[0])
            self.close()
        return None

    def is_still(self) -> bool:
        """Return whether certainly no commit happened since the last call of `version`.

        The check reads the state of two files and needs neither a thread nor a lock of the
        database.
        """
        return (
            self._path is not None
            and self._files is not None
            and _states_of(self._path) == self._files
        )

    def close(self) -> None:
        with self._using:
            self._files = None
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()


def watch_commits(engine: Engine) -> FileWatch:
    """Return a watch on the folder of a SQLite database, else a watch without events."""
    path = engine.url.database if engine.dialect.name == "sqlite" else None
    return FileWatch() if path is None else FileWatch(Path(path).absolute().parent)


def _connect(path: str) -> sqlite3.Connection:
    address = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
    return sqlite3.connect(address, uri=True, timeout=WAIT_S, check_same_thread=False)


async def work_after_commit(watch: CommitWatch, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work, unless certainly no commit happened since the last completed run."""
    if watch.is_still():
        return
    await asyncio.to_thread(watch.version)
    try:
        await work()
    except BaseException:
        watch.close()  # it was not done: the next call tries again
        raise


def _settled_files(
    path: str, now_ns: Callable[[], int] = time.time_ns
) -> tuple[_FileState, ...] | None:
    """Return the states of the database's files, or `None` if a write might not change them."""
    states = _states_of(path)
    newest_ns = max(state.written_ns for state in states)
    return states if newest_ns < now_ns() - SAME_TICK_NS else None


def _states_of(path: str) -> tuple[_FileState, ...]:
    """Return the states of the database and its log.

    A commit writes the log; the last of the connections to close writes both.
    """
    return _state_of(path), _state_of(f"{path}-wal")


def _state_of(path: str) -> _FileState:
    try:
        found = os.stat(path)  # noqa: PTH116  (five times a second)
    except OSError:
        return _FileState(0, 0, 0)
    return _FileState(found.st_size, found.st_ino, found.st_mtime_ns)
