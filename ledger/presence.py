"""Tells a file that is absent from one that cannot be looked at."""

import errno
from pathlib import Path

_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # the last: a link to itself


def is_there(path: Path) -> bool:
    """Return whether something has this path; links are followed.

    Raises `OSError` where that cannot be known (no permission, a disk's error). Since Python 3.14
    `Path.exists` answers False then, and books that cannot be read would count as no books.
    """
    try:
        path.stat()
    except OSError as error:
        if error.errno in _NOWHERE:
            return False
        raise
    return True
