"""Room on the disk that a journal keeps for what ends attempts, so that a full disk loses no end.

It is a file of allocated blocks, given back to the disk when an end does not fit otherwise. As
much is kept as is usual while the disk has it; where only less is free, work goes on as long as
the ends of everything in flight fit into that.
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
        """Have room for that many ends; raises `OSError` when the disk has too little."""
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
        """Raises `OSError` while the disk has no room beside what is kept."""
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
