"""What the scaling process leaves for readers in the run directory."""

from ledger.fleet.scaling_notes import ScalingNote, read_scaling, write_scaling


def test_notes_are_read_as_they_were_written(tmp_path):
    assert read_scaling(tmp_path) == {}
    note = ScalingNote("chat", "act", 2, 1, 1, findings={"orphan": 1}, parked=("pool:chat/1",))
    write_scaling(tmp_path, [note])
    assert read_scaling(tmp_path) == {"chat": note}
    assert [path.name for path in tmp_path.iterdir()] == ["scaling.json"]
