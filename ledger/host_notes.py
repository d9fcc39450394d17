"""Notes in the run directory: one process leaves what it knows of this host, any other shows it.

A file, for it outlives whoever wrote it: what it says then grows old, and that is the news.
"""

from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def write_note(path: Path, note: object) -> None:
    """At once for every reader: never half of it."""
    draft = path.with_name(f"{path.name}.new")
    draft.write_bytes(msgspec.json.encode(note))
    draft.replace(path)


def read_note(path: Path, kind: type[T]) -> T | None:
    """Return the last note; `None` if there never was one."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
