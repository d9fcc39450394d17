"""A fair order of SQLite writers, by a lock file that is taken before the write lock.

SQLite does not queue for its write lock: a waiting writer sleeps up to 100 ms and tries again, and
a writer with a backlog may have taken the lock again. A writer therefore takes the lock file first,
and releases it once it has the database's lock, so a waiting writer goes before the last one. The
order is advisory: a writer that does not get the lock file within `limit_s`, for example because a
process hangs, continues without it, as earlier versions do.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

LOOK_S = 0.002
SUFFIX = "-turn"  # next to SQLite's own `-wal` and `-shm`


def turns_of(database: Path) -> Path:
    """Return the path of the lock file that orders a database's writers."""
    return database.with_name(database.name + SUFFIX)


@contextlib.contextmanager
def acquire_turn(path: Path, limit_s: float) -> Iterator[bool]:
    """Hold the lock file for the `with` block. Yield whether it was acquired within `limit_s`."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield False  # the database reports the error itself
        return
    try:
        yield _try_lock(file, limit_s)
    finally:
        os.close(file)


def _try_lock(file: int, limit_s: float) -> bool:
    for look in range(int(limit_s / LOOK_S) + 1):
        if look:
            time.sleep(LOOK_S)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False
