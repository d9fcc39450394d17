"""Measurements that telemetry made of each engine, stored in the run directory.

Owners of engines see requests that no client sent: `engine status` shows their time and number.
"""

from pathlib import Path
from typing import Literal

import msgspec

from ledger.host_notes import read_note, write_note

MEASUREMENTS_FILE = "measurements.json"
Measure = Literal["off", "idle", "always"]


class EngineMeasurement(msgspec.Struct, frozen=True):
    """Latest speed measurement of one engine.

    `setting` is the pool's `engine.measure`, `None` for an engine that `serve` starts. `at_us` is
    the time of the measurement since the epoch. The counts cover the requests sent for it; they are
    0 if the speed was known or assumed.
    """

    engine: str
    setting: Measure | None
    source: str
    at_us: int
    requests: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0


class MeasurementNotes:
    """Measurements by engine, written to a file when one changes."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / MEASUREMENTS_FILE
        self._notes = read_measurements(run_dir)

    def add(self, note: EngineMeasurement) -> None:
        self._notes = {**self._notes, note.engine: note}
        try:
            write_note(self._path, list(self._notes.values()))
        except OSError:  # such as a full disk
            return


def read_measurements(run_dir: Path) -> dict[str, EngineMeasurement]:
    """Return the measurements by engine; empty if there are none."""
    found = read_note(run_dir / MEASUREMENTS_FILE, list[EngineMeasurement]) or ()
    return {note.engine: note for note in found}
