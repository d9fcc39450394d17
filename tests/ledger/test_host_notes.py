"""What one process leaves, another finds: the last of it, whole; nothing where none was left."""

import threading
from pathlib import Path

from ledger.host_notes import find, leave


def test_the_last_note_is_found(tmp_path: Path):
    path = tmp_path / "seen.json"
    assert find(path, list[int]) is None
    leave(path, [1, 2])
    leave(path, [3])
    assert find(path, list[int]) == [3]
    assert list(tmp_path.iterdir()) == [path]


def test_no_reader_sees_half_of_a_note(tmp_path: Path):
    path, sizes = tmp_path / "seen.json", (1, 200_000)
    leave(path, [7])

    def write() -> None:
        for turn in range(40):
            leave(path, [7] * sizes[turn % 2])

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        assert len(find(path, list[int])) in sizes
    writer.join()
