"""Turns of SQLite's writers: a waiting one gets the lock before the last one.

SQLite has no line for its write lock: who finds it taken sleeps, up to 100 ms, and looks again, and
who works off a backlog has taken it again meanwhile. So a writer first takes the turn, a lock of a
file of its own, and gives it back as soon as it has the database's: while somebody has the turn and
waits, who was served has to wait behind. It is a courtesy and no lock: who does not get it within
`limit_s`, from a process that stands still for instance, goes on without, as versions before it do.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

LOOK_S = 0.002
SUFFIX = "-turn"  # beside SQLite's own `-wal` and `-shm`


def turns_of(database: Path) -> Path:
    """The file whose lock is the turn."""
    return database.with_name(database.name + SUFFIX)


@contextlib.contextmanager
def acquire_turn(path: Path, limit_s: float) -> Iterator[bool]:
    """Whether it was got, and for how long the block takes."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield False  # the database itself will say what is wrong
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
