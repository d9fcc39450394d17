"""Lock files of the kernel, which are released when their process ends."""

import fcntl
import os
from pathlib import Path


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock; false if the file does not exist.

    The file is opened read-only: a failed disk is often remounted read-only, and its journals must
    still be read.
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
    """Lock the file, create it if missing, and return its descriptor.

    Raises `BlockingIOError` if another process holds the lock.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise
    return file
