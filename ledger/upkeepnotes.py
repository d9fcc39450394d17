"""What a host's upkeep last said of its engines: left for whoever shows it, as the writer's lag is.

A file in the run directory: it is of this host and of now. What was done is in the registers, as
overrides of the actor `upkeep`.
"""

from pathlib import Path

import msgspec

NOTES_FILE = "upkeep.json"
ACTOR = "upkeep"  # of overrides


class Note(msgspec.Struct, frozen=True):
    """Of one engine. `waits`: why a restart that is due was not begun; `pace`: of its first hours.

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


def write_notes(run_dir: Path, notes: list[Note]) -> None:
    """At once for every reader: never half of it."""
    draft = run_dir / f"{NOTES_FILE}.new"
    draft.write_bytes(msgspec.json.encode(notes))
    draft.replace(run_dir / NOTES_FILE)


def read_notes(run_dir: Path) -> dict[str, Note]:
    """By engine; empty where no upkeep ever ran."""
    try:
        found = msgspec.json.decode((run_dir / NOTES_FILE).read_bytes(), type=list[Note])
    except FileNotFoundError:
        return {}
    return {note.engine: note for note in found}
