"""Endings on a disk that refuses at any call: each is in the journal in the end, in its order.

The control is a journal that keeps none of them.
"""

import asyncio
import contextlib
import errno
import os
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledger.journals import owed as module
from ledger.journals import write_behind
from ledger.journals.journal import JournalBroken, JournalFull, JournalWriter
from ledger.journals.owed import OwedEndings
from ledger.journals.reader import JournalOffset, JournalReader
from ledger.journals.records import AttemptSettled

WAYS = ("thread", "calls")
REFUSED = ("write", "pwrite", "posix_fallocate", "ftruncate")
ATTEMPTS = 12
PLANS = st.lists(st.sampled_from((True, True, False)), max_size=60)
MEMORY = Path("/dev/shm")


class Disk:
    """Refuses calls by a plan, an entry for each; after its end there is room."""

    def __init__(self, patch, home: Path, plan: list[bool]) -> None:
        self._home, self._plan, self._lock = str(home), iter(plan), threading.Lock()
        self.threads: set[str] = set()
        for name in REFUSED:
            patch.setattr(os, name, self._refusing(name, getattr(os, name)))

    def _refusing(self, name: str, real):
        def call(file, *words):
            if not str(Path(f"/proc/self/fd/{file}").readlink()).startswith(self._home):
                return real(file, *words)
            with self._lock:
                is_full = next(self._plan, False)
            if not is_full:
                return real(file, *words)
            self.threads.add(threading.current_thread().name)
            if name == "write" and len(words[0]) > 8:
                real(file, words[0][:7])  # a part of a frame is there all the same
            raise OSError(errno.ENOSPC, "No space left on device")

        return call


class PlayedWorker:
    """A worker whose attempts begin and end while its disk refuses; `done` were told written."""

    def __init__(self, opened, settled) -> None:
        self._opened, self._settled = opened, settled
        self.begun: list[int] = []
        self.done: list[int] = []

    async def play(self, folder: Path, way: str, plan: list[bool]) -> None:
        self.writer = writer = JournalWriter(folder, "w0", segment_bytes=1500)
        writer.attach(asyncio.get_running_loop(), way)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "RETRY_S", 0.001)
            patch.setattr(write_behind, "RETRY_S", 0.001)
            patch.setattr(write_behind, "ROOM_BYTES", 1200)
            self.disk = Disk(patch, folder, plan)
            ended = 0
            for number in range(ATTEMPTS):
                with contextlib.suppress(JournalFull):
                    writer.append(self._opened(number))
                    self.begun.append(number)
                if number % 4 == 3:
                    ended = self._end(ended)
                    await asyncio.sleep(0)
            self._end(ended)
            await until_none_waits(writer.owed)
            writer.close()

    def _end(self, since: int) -> int:
        for number in self.begun[since:]:
            with contextlib.suppress(JournalFull):  # the control's
                self.writer.append_ending(
                    self._settled(number), lambda number=number: self.done.append(number)
                )
        return len(self.begun)


async def until_none_waits(owed: OwedEndings) -> None:
    async with asyncio.timeout(20):
        while owed.waiting:  # noqa: ASYNC110  (nobody is told of it)
            await asyncio.sleep(0.001)


def played(opened, settled, way: str, plan: list[bool]) -> tuple[PlayedWorker, list[str]]:
    """Return what was played, and the settled attempts that the journal has, in order."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        result = PlayedWorker(opened, settled)
        asyncio.run(result.play(Path(name), way, plan))
        records = read_all(Path(name))
    return result, [each.attempt_id for each in records if isinstance(each, AttemptSettled)]


def read_all(directory: Path) -> list:
    reader, records = JournalReader(directory), []
    for journal in reader.journals():
        since = JournalOffset()
        while (chunk := reader.read(journal, since)).after != since:
            assert not chunk.damages
            records += [frame.record for frame in chunk.frames]
            since = chunk.after
    return records


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=15, deadline=None)
@given(plan=PLANS)
@example(plan=[False, False, True])  # the last call of all, which takes the room back
def test_each_ending_is_written_once_and_in_order(opened, settled, way, plan) -> None:
    result, there = played(opened, settled, way, plan)
    assert there == [settled(number).attempt_id for number in result.begun]
    assert result.done == result.begun
    assert result.writer.owed.lost == 0


def test_control_a_journal_that_keeps_no_ending_loses_some(opened, settled, monkeypatch) -> None:
    def lose(*_given, **_options) -> None:
        raise JournalFull("full")

    monkeypatch.setattr(OwedEndings, "add", lose)
    lacking = 0
    for before in range(0, 30, 3):
        result, there = played(opened, settled, "calls", [False] * before + [True] * 40)
        lacking += len(result.begun) - len(there)
    assert lacking > 0


def test_the_loop_tries_once_and_a_thread_goes_on(opened, settled) -> None:
    """A write to a full disk may take long there."""
    for before in range(12):
        result, _ = played(opened, settled, "calls", [False] * before + [True] * 40)
        if "journal" in result.disk.threads:
            return
    pytest.fail("no ending waited")


async def test_while_endings_wait_no_work_is_taken_and_too_many_are_counted(
    tmp_path, opened, settled, monkeypatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    writer = JournalWriter(tmp_path, "w0")
    writer.attach(asyncio.get_running_loop(), "calls")
    writer.append(opened(1))
    with monkeypatch.context() as patch:
        Disk(patch, tmp_path, [True] * 1_000_000)
        with pytest.raises(JournalFull, match="waits for room"):
            await writer.append_durable(settled(1))
        assert "wait for room" in writer.refusal()
        with pytest.raises(JournalFull, match="1 endings wait"):
            writer.append(opened(2))
        while not writer.owed.lost:
            with contextlib.suppress(JournalFull):
                assert not writer.append_ending(settled(1))
    assert writer.owed.lost == 1
    writer.close()  # once more, and there is room
    assert len([each for each in read_all(tmp_path) if isinstance(each, AttemptSettled)]) > 1


async def test_a_disk_that_fails_ends_the_wait(tmp_path) -> None:
    answers = iter([JournalFull("full"), JournalBroken("an error")])

    def store(_payload: bytes) -> None:
        raise next(answers)

    owed = OwedEndings(store)
    owed.attach(asyncio.get_running_loop())
    owed.add(b"1", None, waits=False)
    owed.add(b"2", None, waits=False)
    await until_none_waits(owed)
    assert owed.lost == 2
    with pytest.raises(JournalFull):
        owed.add(b"3", None, waits=False)
