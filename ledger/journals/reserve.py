"""Disk space that a journal reserves for end records, so that a full disk loses none.

The reserve is a file of allocated blocks, which is released when an end record does not fit
otherwise. The usual size is kept while the disk has space. With less space, work continues as long
as the end records of everything in flight fit.
"""

import errno
import os
from pathlib import Path

MOST_BYTES = 4 * 1024 * 1024
LEAST_BYTES = 64 * 1024
BYTES_PER_END = 1024  # an end with a handful of comparators is about half of it
PROBE_BYTES = 64 * 1024
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class DiskReserve:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.kept_bytes = 0

    def keep(self, ends: int) -> None:
        """Reserve space for `ends` end records. Raises `OSError` if the disk has too little."""
        least = min(max(LEAST_BYTES, ends * BYTES_PER_END), MOST_BYTES)
        if self.kept_bytes >= least:
            return
        size = MOST_BYTES
        while True:
            try:
                self._extend(size)
            except OSError:
                if size == least:
                    raise
                size = max(size // 4, least)
            else:
                self.kept_bytes = size
                return

    def probe(self) -> None:
        """Raise `OSError` if the disk has no space besides the reserve."""
        self._extend(self.kept_bytes + PROBE_BYTES)
        os.ftruncate(self._file, self.kept_bytes)

    def release(self) -> None:
        os.ftruncate(self._file, 0)
        self.kept_bytes = 0

    def close(self) -> None:
        os.close(self._file)

    def _extend(self, size: int) -> None:
        try:
            os.posix_fallocate(self._file, 0, size)
        except OSError:
            os.ftruncate(self._file, self.kept_bytes)  # part of it may have been taken
            raise
