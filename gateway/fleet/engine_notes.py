"""Why this host's engines are as they are: left for `engine status` by who knows of them.

The parent of those that run here knows how their processes are, telemetry how any of them answers.
"""

from collections.abc import Mapping
from pathlib import Path

from ledger.host_notes import read_note, write_note

PARENT, TELEMETRY = "engines.json", "sightings.json"


class EngineStatusNotes:
    """One process's words by engine; written when they change."""

    def __init__(self, run_dir: Path, name: str) -> None:
        self._path = run_dir / name
        self._said: dict[str, str] | None = None

    def publish(self, engine: str = "", words: str = "") -> None:
        """No words: there is nothing to say of it. What cannot be written is not told."""
        said = {name: line for name, line in (self._said or {}).items() if name != engine}
        if words:
            said[engine] = words
        if said == self._said:
            return
        try:
            write_note(self._path, said)
        except OSError:  # a full disk
            return
        self._said = said


def read_status_notes(run_dir: Path) -> Mapping[str, str]:
    """By engine; the parent's before telemetry's."""
    said: dict[str, str] = {}
    for name in (TELEMETRY, PARENT):
        said |= read_note(run_dir / name, dict[str, str]) or {}
    return said
