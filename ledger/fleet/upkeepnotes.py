"""The last notes of a host's upkeep on its engines.

They are a file in the run directory, for this host and the present. Past actions are in the audit
log, as overrides of the actor `upkeep`.
"""

from pathlib import Path

import msgspec

from ledger.host_notes import read_note, write_note

NOTES_FILE = "upkeep.json"
ACTOR = "upkeep"  # the actor of its overrides


class UpkeepNote(msgspec.Struct, frozen=True):
    """The note on one engine. Times are microseconds since the epoch.

    `pace` is the engine's pace as a share of its first hours' pace. `waits` is why a due restart
    has not started. `done` is how the last restart by upkeep ended.
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
    """Return the notes by engine; empty if upkeep never ran."""
    return {note.engine: note for note in read_note(run_dir / NOTES_FILE, list[UpkeepNote]) or ()}
