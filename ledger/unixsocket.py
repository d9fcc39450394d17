"""Short paths of Unix sockets, whose length Linux limits, for deep state directories."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATH_BYTES = 107  # of a Unix socket's path, by Linux


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Yield a path of the socket within the length limit, valid during the `with` block."""
    if len(os.fsencode(path)) <= PATH_BYTES:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
