"""Maps a file that processes of a host share."""

import mmap
import os
from pathlib import Path


def map_file(path: Path, size: int) -> mmap.mmap:
    """Return so many bytes of the file, made with zeros where it has fewer.

    It is never cut: to a process that maps more of it, what is missing would be a fatal signal.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size)
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)
