"""What sampling leaves for others: whole, and nothing where it never ran."""

from pathlib import Path

from ledger.fleet.driftnotes import DriftNote, read_drift, write_drift


def test_notes_come_back_by_pool(tmp_path: Path):
    assert read_drift(tmp_path) == {}
    note = DriftNote("chat", "chat-bf16", 5, 0.05, 40, 40, 1, 0, 0.01, 0.005, 0.02, 0.003)
    write_drift(tmp_path, [note])
    assert read_drift(tmp_path) == {"chat": note}
    write_drift(tmp_path, [])
    assert read_drift(tmp_path) == {}
