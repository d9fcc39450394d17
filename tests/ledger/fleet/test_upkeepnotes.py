"""What upkeep leaves for readers in the run directory."""

from ledger.fleet.upkeepnotes import UpkeepNote, read_notes, write_notes


def test_notes_are_read_as_they_were_written(tmp_path):
    assert read_notes(tmp_path) == {}
    notes = [UpkeepNote("pool:a/0", restart_us=5, pace=0.97), UpkeepNote("pool:a/1", waits="busy")]
    write_notes(tmp_path, notes)
    assert read_notes(tmp_path) == {"pool:a/0": notes[0], "pool:a/1": notes[1]}
    assert [path.name for path in tmp_path.iterdir()] == ["upkeep.json"]
