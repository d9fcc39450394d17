"""Appending: durable, bounded, owned by one process, and whole after SIGKILL."""

import asyncio
import collections
import contextlib
import errno
import itertools
import os
import signal
import textwrap
import threading

import pytest

from deploy import warmstart
from ledger.journals import group_writer
from ledger.journals import journal as module
from ledger.journals.flusher import ThreadFlusher
from ledger.journals.homes import FOLDER, segment_path
from ledger.journals.journal import JournalBroken, JournalFull, JournalWriter
from ledger.journals.reader import JournalOffset, JournalReader


def read_journal(reader, journal):
    since, found = JournalOffset(), []
    while (chunk := reader.read(journal, since)).after != since:
        found += [frame.record for frame in chunk.frames]
        since = chunk.after
    return found


def segments(directory, writer):
    return sorted((directory / FOLDER / writer.name).glob("*.segment"))


def read_all(directory):
    reader = JournalReader(directory)
    return [record for journal in reader.journals() for record in read_journal(reader, journal)]


async def test_what_is_appended_is_read_back_in_order(tmp_path, opened, settled):
    writer = JournalWriter(tmp_path, "w0")
    writer.append(opened(1))
    await writer.append_durable(settled(1))
    writer.close()
    assert read_all(tmp_path) == [opened(1), settled(1)]


async def test_many_waiters_share_few_flushes(tmp_path, settled):
    flushes = []
    writer = JournalWriter(tmp_path, "w0", flusher=ThreadFlusher(flushes.append))
    await asyncio.gather(*(writer.append_durable(settled(number)) for number in range(200)))
    assert 1 <= len(flushes) <= 3  # one that was under way, one for all who waited meanwhile
    writer.close()


class NotingFlusher:
    """A flusher that is done at once; when its rounds began, by the loop's clock."""

    def __init__(self):
        self.begun_s = []

    def start_flush(self, _files, loop, done):
        self.begun_s.append(loop.time())
        loop.call_soon(done, None)

    def close(self): ...


async def test_in_a_rush_flushes_keep_their_distance(tmp_path, settled):
    flusher = NotingFlusher()
    writer = JournalWriter(tmp_path, "w0", flusher=flusher)
    for number in range(20):  # one after the other: none is there when another's flush begins
        await writer.append_durable(settled(number))
    writer.close()
    begun = flusher.begun_s
    assert len(begun) == 20
    apart = [later - earlier for earlier, later in itertools.pairwise(begun)]
    assert min(apart) >= module.ROUND_S - 1e-6


async def test_after_a_pause_nobody_waits_for_a_flush_to_begin(tmp_path, settled):
    flusher = NotingFlusher()
    writer = JournalWriter(tmp_path, "w0", flusher=flusher)
    await writer.append_durable(settled(1))
    await asyncio.sleep(2 * module.ROUND_S)
    writing = asyncio.create_task(writer.append_durable(settled(2)))
    for _ in range(3):  # turns of the loop: to write, to begin, to be done
        await asyncio.sleep(0)
    assert len(flusher.begun_s) == 2
    await writing
    writer.close()


async def test_a_waiter_returns_only_after_a_flush_that_began_after_its_write(tmp_path, settled):
    sizes = []
    path = {}

    def sync(_files):
        sizes.append(path["segment"].stat().st_size)

    writer = JournalWriter(tmp_path, "w0", flusher=ThreadFlusher(sync))
    path["segment"] = segments(tmp_path, writer)[-1]

    async def one(number):
        await writer.append_durable(settled(number))
        return path["segment"].stat().st_size, max(sizes)

    for size, flushed in await asyncio.gather(*(one(number) for number in range(50))):
        assert flushed <= size
    assert sizes[-1] == path["segment"].stat().st_size
    writer.close()


async def test_a_cancelled_caller_leaves_its_record(tmp_path, settled):
    writer = JournalWriter(tmp_path, "w0")
    task = asyncio.create_task(writer.append_durable(settled(1)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await writer.append_durable(settled(2))
    writer.close()
    assert read_all(tmp_path) == [settled(1), settled(2)]


async def test_segments_rotate(tmp_path, opened):
    writer = JournalWriter(tmp_path, "w0", segment_bytes=2000)
    for number in range(100):
        writer.append(opened(number))
    await writer.flush()
    writer.close()
    assert len(segments(tmp_path, writer)) > 4
    assert read_all(tmp_path) == [opened(number) for number in range(100)]


async def test_a_segment_is_durable_before_the_next_one_is_made(tmp_path, opened, monkeypatch):
    """Else a power cut between the two leaves a gap, of which rows are said to lack."""
    writer, made, flushed = JournalWriter(tmp_path, "w0", segment_bytes=2000), [], []
    monkeypatch.setattr(
        module, "sync", lambda files: flushed.extend(os.fstat(each).st_ino for each in files)
    )
    real = module.create_segment

    def create(home, header, flags):
        before = segment_path(home, header.segment - 1)
        made.append(before.stat().st_ino in flushed)
        return real(home, header, flags)

    monkeypatch.setattr(module, "create_segment", create)
    for number in range(20):
        writer.append(opened(number))
    writer.close()
    assert len(made) > 3
    assert all(made)


async def test_a_segment_whose_flush_fails_ends_the_journal(tmp_path, opened, monkeypatch):
    """Also for want of room: what was not flushed may be dropped, and a second flush would lie."""

    def fail(_files):
        raise OSError(errno.ENOSPC, "No space left on device")

    writer = JournalWriter(tmp_path, "w0", segment_bytes=500)
    writer.append(opened(1))
    with monkeypatch.context() as patch:
        patch.setattr(module, "sync", fail)
        with pytest.raises(JournalBroken):
            writer.append(opened(2))
    with pytest.raises(JournalBroken):
        writer.append(opened(3))
    writer.close()
    assert read_all(tmp_path) == [opened(1)]


async def test_full_refuses_new_work_but_takes_its_settles(tmp_path, opened, settled):
    writer = JournalWriter(tmp_path, "w0", limit_bytes=8000)
    numbers = itertools.count()
    with pytest.raises(JournalFull):
        collections.deque((writer.append(opened(number)) for number in numbers), maxlen=0)
    assert writer.size_bytes <= 8000
    await writer.append_durable(settled(0))
    # The ledger writer applies and removes: work goes on.
    reader = JournalReader(tmp_path)
    (journal,) = reader.journals()
    newest = JournalOffset(int(segments(tmp_path, writer)[-1].stem))
    assert reader.remove_applied(journal, newest) > 0
    writer.append(opened(next(numbers)))
    writer.close()


async def test_a_full_disk_refuses_new_work_and_takes_settles(
    tmp_path, opened, settled, monkeypatch
):
    writer = JournalWriter(tmp_path, "w0")
    writer.append(opened(1))
    real, reserve = os.write, tmp_path / FOLDER / writer.name / "reserve"

    def write(file, data):  # the disk has exactly the room that the reserve gives up
        if reserve.stat().st_size:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(file, data)

    def fallocate(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "posix_fallocate", fallocate)
    with pytest.raises(JournalFull):
        writer.append(opened(2))
    await writer.append_durable(settled(1))
    with pytest.raises(JournalFull):  # the reserve is spent: nothing more is begun
        writer.append(opened(3))
    monkeypatch.undo()
    writer.append(opened(4))
    writer.close()
    assert read_all(tmp_path) == [opened(1), settled(1), opened(4)]


async def test_a_failed_flush_is_final(tmp_path, opened, settled):
    def fail(_files):
        raise OSError(errno.EIO, "Input/output error")

    writer = JournalWriter(tmp_path, "w0", flusher=ThreadFlusher(fail))
    with pytest.raises(JournalBroken):
        await writer.append_durable(settled(1))
    with pytest.raises(JournalBroken):
        writer.append(opened(2))
    writer.close()


async def test_closing_ends_every_wait(tmp_path, settled):
    began, go = threading.Event(), threading.Event()

    def slow(files):
        began.set()
        go.wait(10)

    writer = JournalWriter(tmp_path, "w0", flusher=ThreadFlusher(slow))
    first = asyncio.create_task(writer.append_durable(settled(1)))
    await asyncio.to_thread(began.wait, 10)
    second = asyncio.create_task(writer.append_durable(settled(2)))
    await asyncio.sleep(0)
    go.set()
    writer.close()
    await first  # its flush was under way
    with pytest.raises(JournalBroken):
        await second
    with pytest.raises(JournalBroken):
        await writer.flush()


async def test_each_process_has_a_journal_of_its_own(tmp_path, opened):
    first, second = JournalWriter(tmp_path, "w0"), JournalWriter(tmp_path, "w0")
    assert first.name != second.name
    first.append(opened(1))
    second.append(opened(2))
    first.close()
    second.close()
    journals = JournalReader(tmp_path).journals()
    assert {journal.name for journal in journals} == {first.name, second.name}
    assert {journal.worker for journal in journals} == {"w0"}


async def test_what_earlier_processes_left_counts_against_the_limit(tmp_path, opened):
    first = JournalWriter(tmp_path, "w0", limit_bytes=8000)
    with contextlib.suppress(JournalFull):
        for number in range(1000):
            first.append(opened(number))
    first.close()
    again = JournalWriter(tmp_path, "w0", limit_bytes=8000)
    with pytest.raises(JournalFull):
        again.append(opened(1))
    again.close()
    other = JournalWriter(tmp_path, "w1", limit_bytes=8000)
    other.append(opened(1))
    other.close()


WORKER = """
import asyncio, sys
from pathlib import Path
from ledger.journals.journal import JournalWriter
from ledger.journals.records import RequestRefused

def record(number):
    return RequestRefused(f"r{number}", number, "k", "t", "o", "m", "p", "budget", 429)

async def main():
    writer = JournalWriter(Path(sys.argv[1]), "w0", segment_bytes=65536)
    for number in range(10**9):
        writer.append(record(number))
        if number % 100 == 0:
            print(number, flush=True)

asyncio.run(main())
"""


def test_what_was_appended_survives_sigkill(tmp_path):
    acknowledged = 0
    for _ in range(3):
        process = warmstart.programs().open([tmp_path], program=textwrap.dedent(WORKER))
        for _ in range(20):
            last = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        last = max([last, *map(int, process.stdout.read().split())])
        process.stdout.close()
        process.wait()
        acknowledged += last + 1
    reader = JournalReader(tmp_path)
    assert len(reader.journals()) == 3
    found = 0
    for journal in reader.journals():
        names = read_journal(reader, journal)
        assert [record.request_id for record in names] == [f"r{n}" for n in range(len(names))]
        found += len(names)
    assert found >= acknowledged


class Disk:
    """A disk with so much room, in place of the one that the journal is on."""

    def __init__(self, monkeypatch, room):
        self.room, self._write, self._kept = room, os.write, {}
        monkeypatch.setattr(os, "write", self.write)
        monkeypatch.setattr(os, "posix_fallocate", self.fallocate)
        monkeypatch.setattr(os, "ftruncate", self.ftruncate)

    def write(self, file, data):
        if len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= len(data)
        return self._write(file, data)

    def fallocate(self, file, _start, size):
        more = size - self._kept.get(file, 0)
        if more > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._kept[file], self.room = size, self.room - more

    def ftruncate(self, file, size):
        if file in self._kept:
            self.room += self._kept[file] - size
            self._kept[file] = size


def test_a_disk_with_room_for_a_smaller_reserve_only_takes_work(tmp_path, opened, monkeypatch):
    disk = Disk(monkeypatch, 300_000)
    writer = JournalWriter(tmp_path, "w0")
    assert writer.refusal() is None
    writer.append(opened(1))
    assert disk.room < 300_000 - 64 * 1024  # something is kept
    writer.close()


async def test_a_full_disk_is_told_without_work_and_so_is_room(
    tmp_path, opened, settled, monkeypatch
):
    disk = Disk(monkeypatch, 70_000)
    writer = JournalWriter(tmp_path, "w0")
    assert writer.refusal() is None
    with pytest.raises(JournalFull):
        collections.deque((writer.append(opened(number)) for number in range(1000)), maxlen=0)
    assert "No space left" in writer.refusal()
    assert "No space left" in writer.refusal()  # looking changes nothing
    await writer.append_durable(settled(0))
    assert "No space left" in writer.refusal()  # the reserve went to the end
    disk.room += 400_000
    assert writer.refusal() is None
    writer.append(opened(2))
    writer.close()


def test_a_reserve_grows_with_what_is_in_flight(tmp_path, opened, settled, monkeypatch):
    """Every attempt that was let in can be ended, however many there are."""
    Disk(monkeypatch, 200_000)
    writer = JournalWriter(tmp_path, "w0")
    numbers = itertools.count()
    with pytest.raises(JournalFull):
        collections.deque((writer.append(opened(number)) for number in numbers), maxlen=0)
    begun = next(numbers) - 1
    assert begun > 64
    for number in range(begun):
        writer.append_ending(settled(number))
    writer.close()


def test_a_segment_that_a_full_disk_refused_is_opened_later(tmp_path, opened, monkeypatch):
    writer = JournalWriter(tmp_path, "w0", segment_bytes=500)
    writer.append(opened(1))
    real = group_writer.sync_directory

    def fail(_path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(group_writer, "sync_directory", fail)
    with pytest.raises(JournalFull):
        writer.append(opened(2))
    monkeypatch.setattr(group_writer, "sync_directory", real)
    writer.append(opened(3))
    writer.close()
    assert read_all(tmp_path) == [opened(1), opened(3)]


async def test_a_mark_that_a_full_disk_refuses_refuses_the_frame(tmp_path, opened, settled):
    """What is not marked is not there: its frame is taken back, and an end has room."""
    writer = JournalWriter(tmp_path, "w0")
    writer.append(opened(1))
    mark, left = writer._mark.memory, [1]

    class Full:
        def __setitem__(self, place, head) -> None:
            if left and left.pop():
                raise OSError(errno.ENOSPC, "No space left on device")
            mark[place] = head

        def close(self) -> None:
            mark.close()

    writer._mark.memory = Full()
    size = writer.size_bytes
    with pytest.raises(JournalFull):
        writer.append(opened(2))
    assert writer.size_bytes == size
    left.append(1)
    await writer.append_durable(settled(1))
    writer.close()
    assert read_all(tmp_path) == [opened(1), settled(1)]
