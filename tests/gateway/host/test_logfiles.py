"""A process that prints for days fills no disk: its file is bounded, and goes on in order."""

import asyncio
import subprocess
import sys

from gateway.host import logfiles
from gateway.host.logfiles import rotate, rotate_forever

LIMIT = 4096
PRINTS = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)\n"


def test_what_appends_goes_on_at_the_beginning(tmp_path) -> None:
    log = tmp_path / "worker-0.log"
    with log.open("ab") as file:
        child = subprocess.Popen(
            [sys.executable, "-c", PRINTS], stdin=subprocess.PIPE, stdout=file, text=True
        )
    assert child.stdin is not None
    turned = []
    for number in range(500):
        child.stdin.write(f"line {number:06}\n")
        child.stdin.flush()
        while f"line {number:06}\n" not in log.read_text():
            pass  # it has written; the copy loses nothing here
        turned.append(rotate(log, LIMIT))
    child.stdin.close()
    assert child.wait(10) == 0
    assert sum(turned) == 500 * 12 // (LIMIT + 12)
    kept = (tmp_path / "worker-0.log.1").read_text() + log.read_text()
    assert kept == "".join(f"line {number:06}\n" for number in range(500))
    assert log.stat().st_size <= LIMIT
    assert sorted(path.name for path in tmp_path.iterdir()) == ["worker-0.log", "worker-0.log.1"]


def test_of_what_was_before_one_file_is_kept(tmp_path) -> None:
    log = tmp_path / "a.log"
    for text in ("first", "second"):
        log.write_text(text)
        assert rotate(log, 1)
    assert (tmp_path / "a.log.1").read_text() == "second"
    assert log.read_text() == ""


def test_nothing_there_and_nothing_full_is_left_alone(tmp_path) -> None:
    log = tmp_path / "a.log"
    assert not rotate(log, 3)
    log.write_text("abc")
    assert not rotate(log, 3)
    assert log.read_text() == "abc"


def test_what_cannot_be_copied_is_emptied(tmp_path) -> None:
    log = tmp_path / "a.log"
    log.write_text("abcd")
    (tmp_path / "a.log.1").mkdir()  # no file takes its place, as none does on a full disk
    assert rotate(log, 3)
    assert log.read_text() == ""
    assert not (tmp_path / "a.log.part").exists()


async def test_files_that_come_later_are_kept_too(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(logfiles, "EACH_S", 0.01)
    asked, found = asyncio.Event(), []

    def logs() -> list:
        if found:
            asked.set()
        return found

    task = asyncio.create_task(rotate_forever(logs))
    log = tmp_path / "later.log"
    log.write_bytes(b"x" * (logfiles.LIMIT_BYTES + 1))
    found.append(log)
    await asyncio.wait_for(asked.wait(), 20)
    asked.clear()
    await asyncio.wait_for(asked.wait(), 20)  # the first round has ended
    task.cancel()
    assert log.stat().st_size == 0
    assert log.with_name("later.log.1").stat().st_size == logfiles.LIMIT_BYTES + 1
