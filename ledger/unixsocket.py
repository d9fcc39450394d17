"""The names of Unix sockets: Linux takes short ones only, and state directories may lie deep."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATH_BYTES = 107  # of a Unix socket's path, by Linux


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A name of the socket that fits its bytes, however deep the state directory lies."""
    if len(os.fsencode(path)) <= PATH_BYTES:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
