"""Lock files: who holds one, and taking it. The kernel's locks end with their process."""

import fcntl
import os
from pathlib import Path


def is_locked(path: Path) -> bool:
    """A file that is not there is held by nobody.

    It is opened for reading: a disk that failed is often left read-only, and its journals are read.
    """
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)


def take_lock(path: Path) -> int:
    """Return the open file, made where there is none; raise BlockingIOError if another has it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise
    return file
