"""A log is followed across both ways of rotating it."""

import shutil
from pathlib import Path

import pytest

from backends.engine.guard import Log
from gateway.cli.logtail import LogTail
from gateway.host.logfiles import rotate


def test_its_last_lines_and_then_what_comes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\nthr\xc3\xa9")
    with LogTail(path) as tail, path.open("ab", buffering=0) as log:
        assert tail.last(2) == "two\nthr\xe9"
        assert tail.more() == ""
        log.write(b"!\n\xff\n\xc3")
        assert tail.more() == "!\n\ufffd\n"
        log.write(b"\xa9\n")
        assert tail.more() == "\xe9\n", "a letter that was cut in two is one"


def test_an_engines_log_that_began_anew_is_followed(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", 8)
    log.write(b"one\n")
    with LogTail(tmp_path / "log") as tail:
        assert tail.last(9) == "one\n"
        log.write(b"two\n")
        log.write(b"three\n")  # in the next file
        log.write(b"4\n")
        assert tail.more() + tail.more() + tail.more() == "two\nthree\n4\n"
    log.close()
    with LogTail(tmp_path / "log") as tail:
        assert tail.last(3) == "two\nthree\n4\n", "that of a crash may be in the file before"


def test_a_log_that_was_copied_and_emptied_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\n")
    with LogTail(path) as tail:
        tail.last(1)
        assert rotate(path, 4)
        with path.open("a") as log:
            log.write("3\n")
        assert tail.more() == "3\n"


def test_while_there_is_none_nothing_came(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with pytest.raises(OSError, match="log"):
        LogTail(path)
    path.write_text("one\n")
    with LogTail(path) as tail:
        tail.last(1)
        shutil.move(path, tmp_path / "log.1")
        assert tail.more() == ""
        path.write_text("two\n")
        assert tail.more() == "two\n"


def test_what_came_between_the_last_look_and_the_rotation_is_told(tmp_path, monkeypatch) -> None:
    path, usual = tmp_path / "log", Path.stat
    path.write_text("one\n")

    def rotated(self, **how):
        monkeypatch.setattr(Path, "stat", usual)
        with path.open("a") as log:
            log.write("late\n")
        path.rename(tmp_path / "log.1")
        path.write_text("next\n")
        return usual(self, **how)

    with LogTail(path) as tail:
        tail.last(1)
        monkeypatch.setattr(Path, "stat", rotated)
        assert tail.more() == "late\nnext\n"
