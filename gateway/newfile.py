"""Atomic creation of files that does not overwrite an existing file by accident."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def new_file(path: Path, *, replace: bool) -> Iterator[BinaryIO]:
    """Yield a temporary file beside `path`; flush and rename it when the block succeeds.

    Raises `FileExistsError` if `path` exists, or appears while the block runs, and `replace` is
    False. Raises `IsADirectoryError` for a directory.
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
            os.link(draft, path)  # unlike a rename, a link fails if the name exists
    finally:
        draft.unlink(missing_ok=True)
