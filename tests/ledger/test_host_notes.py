"""What one process leaves, another finds: the last of it, whole; nothing where none was left."""

import threading
from pathlib import Path

from ledger.host_notes import read_note, write_note


def test_the_last_note_is_found(tmp_path: Path):
    path = tmp_path / "seen.json"
    assert read_note(path, list[int]) is None
    write_note(path, [1, 2])
    write_note(path, [3])
    assert read_note(path, list[int]) == [3]
    assert list(tmp_path.iterdir()) == [path]


def test_no_reader_sees_half_of_a_note(tmp_path: Path):
    path, sizes = tmp_path / "seen.json", (1, 200_000)
    write_note(path, [7])

    def write() -> None:
        for turn in range(40):
            write_note(path, [7] * sizes[turn % 2])

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        assert len(read_note(path, list[int])) in sizes
    writer.join()
