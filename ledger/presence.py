"""Existence checks of files that do not mistake an unreadable path for an absent one."""

import errno
from pathlib import Path

_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # the last: a link to itself


def is_there(path: Path) -> bool:
    """Return whether the path exists; links are followed.

    Raises `OSError` if that cannot be known (no permission, a disk error). Since Python 3.14
    `Path.exists` returns false in these cases, and an unreadable ledger would count as none.
    """
    try:
        path.stat()
    except OSError as error:
        if error.errno in _NOWHERE:
            return False
        raise
    return True
