"""A file that is there whole or not at all, and never instead of one that nobody meant to lose."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def new_file(path: Path, *, replace: bool) -> Iterator[BinaryIO]:
    """Written beside `path`, flushed to the disk, and named so when the block ends well.

    Raises `FileExistsError` if `path` exists (or comes to exist meanwhile) and may not be replaced.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory")
    if not replace and os.path.lexists(path):
        raise FileExistsError(f"{path} exists")
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with draft.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if replace:
            draft.replace(path)
        else:
            os.link(draft, path)  # fails where a rename would replace
    finally:
        draft.unlink(missing_ok=True)
