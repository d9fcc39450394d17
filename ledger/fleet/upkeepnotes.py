"""The last notes of a host's upkeep on its engines, as a file for readers.

A file in the run directory: it is of this host and of now. What was done is in the registers, as
overrides of the actor `upkeep`.
"""

from pathlib import Path

import msgspec

from ledger.host_notes import read_note, write_note

NOTES_FILE = "upkeep.json"
ACTOR = "upkeep"  # of overrides


class UpkeepNote(msgspec.Struct, frozen=True):
    """The note on one engine. `waits`: why a due restart has not begun; `pace`: its first hours.

    Times are microseconds by the epoch. `done`: how its last restart by upkeep ended.
    """

    engine: str
    restart_us: int | None = None
    stops_us: int | None = None
    starts_us: int | None = None
    pace: float | None = None
    waits: str | None = None
    done: str | None = None
    done_us: int | None = None


def write_notes(run_dir: Path, notes: list[UpkeepNote]) -> None:
    write_note(run_dir / NOTES_FILE, notes)


def read_notes(run_dir: Path) -> dict[str, UpkeepNote]:
    """By engine; empty where no upkeep ever ran."""
    return {note.engine: note for note in read_note(run_dir / NOTES_FILE, list[UpkeepNote]) or ()}
