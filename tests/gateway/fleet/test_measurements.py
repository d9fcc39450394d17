"""Notes of what was sent to engines to time them: kept by engine, read by anybody."""

from pathlib import Path

from gateway.fleet.measurements import (
    MEASUREMENTS_FILE,
    EngineMeasurement,
    MeasurementNotes,
    read_measurements,
)

FIRST = EngineMeasurement("pool:a/0", "idle", "measured", 1, 17, 900, 300)
SECOND = EngineMeasurement("pool:b/0", "off", "assumed", 2)


def test_the_last_note_of_each_engine_is_kept_across_writers(tmp_path: Path) -> None:
    assert read_measurements(tmp_path) == {}
    MeasurementNotes(tmp_path).add(FIRST)
    MeasurementNotes(tmp_path).add(SECOND)
    assert read_measurements(tmp_path) == {"pool:a/0": FIRST, "pool:b/0": SECOND}
    later = EngineMeasurement("pool:a/0", "idle", "measured", 3, 18, 901, 301)
    MeasurementNotes(tmp_path).add(later)
    assert read_measurements(tmp_path)["pool:a/0"] == later


def test_a_note_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    notes = MeasurementNotes(tmp_path / "gone")
    notes.add(FIRST)
    assert not (tmp_path / "gone" / MEASUREMENTS_FILE).exists()
