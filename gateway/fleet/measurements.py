"""Measurements: what telemetry last sent to each engine to time it, left in the run directory.

An owner of an engine sees requests that no client sent: `engine status` tells when and how many.
"""

from pathlib import Path
from typing import Literal

import msgspec

from ledger.host_notes import read_note, write_note

MEASUREMENTS_FILE = "measurements.json"
Measure = Literal["off", "idle", "always"]


class EngineMeasurement(msgspec.Struct, frozen=True):
    """`setting`: `engine.measure` of its pool; `None` of an engine that `serve` starts itself.

    `at_us`: when its speed was found out, by the epoch; the counts are of requests sent for that,
    0 where it was known or assumed.
    """

    engine: str
    setting: Measure | None
    source: str
    at_us: int
    requests: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0


class MeasurementNotes:
    """One telemetry's notes by engine; written when one changes."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / MEASUREMENTS_FILE
        self._notes = read_measurements(run_dir)

    def add(self, note: EngineMeasurement) -> None:
        self._notes = {**self._notes, note.engine: note}
        try:
            write_note(self._path, list(self._notes.values()))
        except OSError:  # a full disk
            return


def read_measurements(run_dir: Path) -> dict[str, EngineMeasurement]:
    """By engine; empty where none was ever met."""
    found = read_note(run_dir / MEASUREMENTS_FILE, list[EngineMeasurement]) or ()
    return {note.engine: note for note in found}
