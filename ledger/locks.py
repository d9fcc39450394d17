"""Whether somebody holds a lock file at this moment: the kernel's locks end with their process."""

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
