"""Reasons for the state of this host's engines, for `engine status`.

The parent writes notes on the processes that it runs, telemetry on how engines answer.
"""

from collections.abc import Mapping
from pathlib import Path

from ledger.host_notes import read_note, write_note

PARENT, TELEMETRY = "engines.json", "sightings.json"


class EngineStatusNotes:
    """Notes of one process by engine, written to a file when they change."""

    def __init__(self, run_dir: Path, name: str) -> None:
        self._path = run_dir / name
        self._said: dict[str, str] | None = None

    def publish(self, engine: str = "", words: str = "") -> None:
        """Replace the note of an engine; an empty text removes it. Write errors are ignored."""
        said = {name: line for name, line in (self._said or {}).items() if name != engine}
        if words:
            said[engine] = words
        if said == self._said:
            return
        try:
            write_note(self._path, said)
        except OSError:  # such as a full disk
            return
        self._said = said


def read_status_notes(run_dir: Path) -> Mapping[str, str]:
    """Return the notes by engine; the parent's notes have precedence over telemetry's."""
    said: dict[str, str] = {}
    for name in (TELEMETRY, PARENT):
        said |= read_note(run_dir / name, dict[str, str]) or {}
    return said
