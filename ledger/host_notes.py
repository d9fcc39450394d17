"""Notes in the run directory: files by which a process publishes its state to its host.

A file outlives the process that wrote it. Readers recognise a dead writer by the age of its note.
"""

from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def write_note(path: Path, note: object) -> None:
    """Replace the note atomically: readers see the old note or the new one."""
    draft = path.with_name(f"{path.name}.new")
    draft.write_bytes(msgspec.json.encode(note))
    draft.replace(path)


def read_note(path: Path, kind: type[T]) -> T | None:
    """Return the last note, or `None` if there never was one."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
