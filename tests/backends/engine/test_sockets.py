"""Where an engine's processes meet: a folder a life, and none stays behind."""

import socket
import stat
from pathlib import Path

from backends.engine.sockets import make_sockets, remove_sockets


def bound(folder: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(folder / "0055dc09-7af0-483e-9f8c-6e98f4dd5bd3"))
    return made


def test_a_life_has_a_folder_that_goes_with_what_is_in_it(tmp_path):
    log = tmp_path / "0.log"
    folder = make_sockets(log)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    bound(folder).close()
    remove_sockets(log)
    assert not folder.exists()
    assert list(tmp_path.iterdir()) == []
    remove_sockets(log)


def test_the_next_life_removes_what_one_left_whose_end_nobody_saw(tmp_path):
    log = tmp_path / "0.log"
    first = make_sockets(log)
    bound(first).close()
    second = make_sockets(log)
    assert (first.exists(), second.exists()) == (False, True)
    remove_sockets(log)


def test_a_folder_that_is_none_of_ours_stays(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "0.log.sockets").symlink_to(tmp_path / "precious")
    remove_sockets(tmp_path / "0.log")
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
