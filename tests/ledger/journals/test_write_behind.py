"""A journal beside its loop: nothing there waits for a file system, and nothing put is lost."""

import asyncio
import builtins
import collections
import errno
import itertools
import os
import random
import shutil
import signal
import textwrap
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy import warmstart
from ledger.journals import journal as journal_module
from ledger.journals import pending as pending_module
from ledger.journals import reader as reader_module
from ledger.journals import write_behind as module
from ledger.journals.homes import FOLDER
from ledger.journals.journal import JournalBroken, JournalFull, JournalWriter
from ledger.journals.pending import GROUP_BYTES, HALF_BYTES, PENDING_FILE
from ledger.journals.reader import JournalOffset, JournalReader

CALLS = (
    "write", "pwrite", "writev", "fsync", "fdatasync", "sync", "posix_fallocate", "ftruncate",
    "open", "close", "rename", "unlink", "mkdir", "read", "pread", "lseek",
)  # fmt: skip


@pytest.fixture(params=["kernel", "thread"])
def kernel(request) -> bool:
    return request.param == "kernel"


def open_writer(directory: Path, *, kernel: bool = True, **given) -> JournalWriter:
    writer = JournalWriter(directory, "w0", **given)
    assert writer.attach(asyncio.get_running_loop(), "kernel" if kernel else "thread")
    return writer


def read_all(directory: Path) -> tuple[list, list]:
    """All records, as the ledger's writer reads them, and what is told of them."""
    reader, records, told = JournalReader(directory), [], []
    for journal in reader.journals():
        since = JournalOffset()
        while (chunk := reader.read(journal, since)).after != since:
            records += [frame.record for frame in chunk.frames]
            told, since = [*told, *chunk.damages], chunk.after
        if (lost := reader.lost_tail(journal, since)) is not None:
            told.append(lost)
    return records, told


def copy_as_killed(writer: JournalWriter, directory: Path, copy: Path) -> Path:
    """What a kill in this instant leaves; in the order in which a reader looks."""
    home = directory / FOLDER / writer.name
    there = copy / FOLDER / writer.name
    there.mkdir(parents=True)
    for name in ("holder", PENDING_FILE, *sorted(path.name for path in home.glob("*.segment"))):
        shutil.copy(home / name, there / name)
    return copy


@contextmanager
def noted_calls(monkeypatch, writer: JournalWriter):
    """Note calls of files by this thread; the loop's own of its sockets and pipes are none."""
    noted, here = [], threading.get_ident()
    home = str(writer._home)

    def watch(name, real):
        def call(*args, **named):
            if threading.get_ident() == here:
                what = args[0] if args else None
                path = what
                if isinstance(what, int):
                    try:
                        path = os.readlink(f"/proc/self/fd/{what}")  # noqa: PTH115  (watched itself)
                    except OSError:
                        path = ""
                if str(path).startswith(home):
                    noted.append((name, path))
            return real(*args, **named)

        return call

    with monkeypatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, watch(name, getattr(os, name)))
        patch.setattr(builtins, "open", watch("open", builtins.open))
        yield noted


async def work(writer: JournalWriter, opened, settled, numbers) -> None:
    for number in numbers:
        writer.append(opened(number))
        if number % 3:
            await writer.append_durable(settled(number))
        else:
            writer.append_ending(settled(number))
            await asyncio.sleep(0)


async def test_no_call_of_the_loop_can_wait_for_a_file_system(
    tmp_path, opened, settled, kernel, monkeypatch
) -> None:
    writer = open_writer(tmp_path, kernel=kernel, segment_bytes=20_000)
    with noted_calls(monkeypatch, writer) as noted:
        await work(writer, opened, settled, range(200))
        assert writer.refusal() is None
    assert noted == []
    assert len(list(writer._home.glob("*.segment"))) > 3
    writer.close()


async def test_control_without_it_the_loop_writes(tmp_path, opened, settled, monkeypatch) -> None:
    writer = JournalWriter(tmp_path, "w0", segment_bytes=20_000)
    with noted_calls(monkeypatch, writer) as noted:
        await work(writer, opened, settled, range(20))
    assert {"write"} <= {name for name, _ in noted}
    writer.close()


async def test_who_asks_for_calls_has_a_loop_that_writes(tmp_path, opened) -> None:
    writer = JournalWriter(tmp_path, "w0")
    assert not writer.attach(asyncio.get_running_loop(), "calls")
    assert not (writer._home / PENDING_FILE).exists()
    writer.append(opened(1))
    await writer.flush()
    writer.close()
    assert read_all(tmp_path) == ([opened(1)], [])


async def test_what_refuses_a_way_is_told_and_the_next_is_taken(
    tmp_path, opened, monkeypatch
) -> None:
    def refuse():
        raise PermissionError(errno.EPERM, "Operation not permitted")

    told = []
    for number, (name, refusal) in enumerate(
        ((None, None), ("UringWrites", refuse), ("writes_in_place", lambda _file: False))
    ):
        with monkeypatch.context() as patch:
            if name is not None:
                patch.setattr(journal_module if number == 1 else pending_module, name, refusal)
            writer = JournalWriter(tmp_path / str(number), "w0")
            is_behind = writer.attach(asyncio.get_running_loop(), "kernel")
        told.append((is_behind, writer.way, (writer.way_refused or "").partition(":")[0]))
        writer.append(opened(1))
        await writer.flush()
        writer.close()
        assert read_all(tmp_path / str(number)) == ([opened(1)], [])
    if told[0][1] != "kernel":  # this machine refuses it
        told[0] = (True, "kernel", "")
    home = f"no memory can be mapped safely in {writer._home}"
    assert told == [(True, "kernel", ""), (True, "thread", "io_uring"), (False, "calls", home)]


async def test_what_is_put_is_read_at_once_and_when_it_is_closed(
    tmp_path, opened, settled, kernel
) -> None:
    writer = open_writer(tmp_path, kernel=kernel, segment_bytes=3_000)
    wanted = []
    for number in range(60):
        writer.append(opened(number))
        wanted.append(opened(number))
        assert read_all(tmp_path) == (wanted, [])
        await writer.append_durable(settled(number))
        wanted.append(settled(number))
        assert read_all(tmp_path) == (wanted, [])
    writer.append(opened(60))
    writer.close()
    assert read_all(tmp_path) == ([*wanted, opened(60)], [])


async def test_a_kill_at_any_instant_loses_nothing(tmp_path, opened, settled, kernel) -> None:
    dice, put = random.Random(3), []
    writer = open_writer(tmp_path / "live", kernel=kernel, segment_bytes=4_000)
    for number in range(40):
        writer.append(opened(number, decision=bytes(dice.randrange(900))))
        put.append(opened(number).attempt_id)
        if dice.random() < 0.5:
            waiting = asyncio.create_task(writer.flush())
            await asyncio.sleep(dice.choice([0, 0, 0.001, 0.003]))
            if dice.random() < 0.3:
                await waiting
        copy = copy_as_killed(writer, tmp_path / "live", tmp_path / f"copy{number}")
        records, told = read_all(copy)
        assert [record.attempt_id for record in records] == put
        assert told == []
        shutil.rmtree(copy)
    writer.close()


async def test_a_volume_that_moves_to_another_host_has_what_was_put(
    tmp_path, opened, monkeypatch
) -> None:
    writer = open_writer(tmp_path / "live")
    for number in range(5):
        writer.append(opened(number))
        if number == 2:
            await writer.flush()
    copy = copy_as_killed(writer, tmp_path / "live", tmp_path / "copy")
    monkeypatch.setattr(reader_module, "read_boot_id", lambda: "another host's")
    assert read_all(copy) == ([opened(number) for number in range(5)], [])
    writer.close()


async def test_behind_what_a_power_cut_took_nothing_is_made_up(
    tmp_path, opened, monkeypatch
) -> None:
    """Of memory the kernel may have kept a later group alone: nobody was told of it."""
    writer = open_writer(tmp_path / "live")
    writer.append(opened(1))
    await writer.flush()
    copy = copy_as_killed(writer, tmp_path / "live", tmp_path / "copy")
    await writer.append_durable(opened(2))
    writer.append(opened(3))
    shutil.copy(writer._home / PENDING_FILE, copy / FOLDER / writer.name / PENDING_FILE)
    half = copy / FOLDER / writer.name / PENDING_FILE
    with half.open("r+b") as file:
        file.seek(HALF_BYTES)
        file.write(bytes(GROUP_BYTES))
    monkeypatch.setattr(reader_module, "read_boot_id", lambda: "another boot")
    assert read_all(copy) == ([opened(1)], [])
    writer.close()


async def test_control_without_its_memory_a_kill_loses_and_tells(tmp_path, opened) -> None:
    writer = open_writer(tmp_path / "live")
    for number in range(5):
        writer.append(opened(number))
    copy = copy_as_killed(writer, tmp_path / "live", tmp_path / "copy")
    (copy / FOLDER / writer.name / PENDING_FILE).unlink()
    records, told = read_all(copy)
    assert records == []
    assert [damage.missing for damage in told] == [5]
    writer.close()


async def test_damage_in_memory_costs_itself_and_is_told(tmp_path, opened) -> None:
    writer = open_writer(tmp_path / "live")
    for number in range(5):
        writer.append(opened(number))
    copy = copy_as_killed(writer, tmp_path / "live", tmp_path / "copy")
    path = copy / FOLDER / writer.name / PENDING_FILE
    data = bytearray(path.read_bytes())
    data[data.index(b"r2.1") + 1] ^= 4
    path.write_bytes(data)
    records, told = read_all(copy)
    assert [record.attempt_id for record in records] == ["r0.1", "r1.1", "r3.1", "r4.1"]
    assert [damage.missing for damage in told] == [1]
    writer.close()


async def test_what_nobody_waits_for_is_written_soon(tmp_path, opened, kernel, monkeypatch) -> None:
    monkeypatch.setattr(module, "LAZY_S", 0.01)
    writer = open_writer(tmp_path, kernel=kernel)
    segment = next(writer._home.glob("*.segment"))
    before = segment.stat().st_size
    writer.append(opened(1))
    await until(lambda: segment.stat().st_size > before)
    writer.close()


async def until(holds) -> None:
    deadline_s = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0.005)


class FullDisk:
    """Refuses writes and what is kept, to whoever asks, while `is_full`."""

    def __init__(self, monkeypatch) -> None:
        self.is_full, self.takes_ends = True, False
        self._pwrite, self._fallocate = os.pwrite, os.posix_fallocate
        self._truncate, self.kept = os.ftruncate, True
        monkeypatch.setattr(os, "pwrite", self.pwrite)
        monkeypatch.setattr(os, "posix_fallocate", self.fallocate)
        monkeypatch.setattr(os, "ftruncate", self.truncate)

    def pwrite(self, file, data, offset):
        if self.is_full and (self.kept or not self.takes_ends):
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._pwrite(file, data, offset)

    def fallocate(self, file, start, size):
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._fallocate(file, start, size)

    def truncate(self, file, size):
        self.kept = size > 0
        self._truncate(file, size)


async def test_a_full_disk_takes_the_ends_of_what_is_open_and_nothing_more(
    tmp_path, opened, settled, monkeypatch
) -> None:
    writer = open_writer(tmp_path, kernel=False)
    for number in range(50):
        writer.append(opened(number))
    disk = FullDisk(monkeypatch)
    disk.takes_ends = True
    await asyncio.gather(*(writer.append_durable(settled(number)) for number in range(50)))
    with pytest.raises(JournalFull):
        writer.append(opened(50))
    await until(lambda: "No space left" in (writer.refusal() or ""))
    disk.is_full = False
    await until(lambda: writer.refusal() is None)
    writer.append(opened(51))
    await writer.append_durable(settled(51))
    writer.close()
    records, told = read_all(tmp_path)
    assert len(records) == 102
    assert told == []


async def test_what_has_no_room_is_told_kept_and_written_later(
    tmp_path, opened, settled, monkeypatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    writer = open_writer(tmp_path, kernel=False)
    writer.append(opened(1))
    disk = FullDisk(monkeypatch)
    with pytest.raises(JournalFull):
        await writer.append_durable(settled(1))
    with pytest.raises(JournalFull):
        writer.append(opened(2))
    assert read_all(tmp_path) == ([opened(1), settled(1)], [])
    disk.is_full = False
    await until(lambda: writer.refusal() is None)
    await writer.append_durable(settled(3))
    writer.close()
    assert read_all(tmp_path) == ([opened(1), settled(1), settled(3)], [])


async def test_a_disk_that_stays_full_keeps_it_in_the_file_when_closed(
    tmp_path, opened, monkeypatch
) -> None:
    writer = open_writer(tmp_path, kernel=False)
    writer.append(opened(1))
    with monkeypatch.context() as patch:
        FullDisk(patch)
        writer.close()
    assert read_all(tmp_path) == ([opened(1)], [])


async def test_work_is_refused_before_memory_lacks_room_for_ends(tmp_path, opened, settled) -> None:
    writer = open_writer(tmp_path, kernel=False)
    go = threading.Event()
    writer._behind._writer.start_work(lambda: bool(go.wait(20)), asyncio.get_running_loop(), print)
    stuck = asyncio.create_task(writer.flush())
    await asyncio.sleep(0.01)
    numbers = itertools.count()
    with pytest.raises(JournalFull, match="wait for the disk"):
        collections.deque(
            (writer.append(opened(number, decision=bytes(3000))) for number in numbers), maxlen=0
        )
    begun = next(numbers) - 1
    assert begun > 300
    for number in range(begun):
        writer.append_ending(settled(number))
    go.set()
    await stuck
    await writer.flush()
    assert writer.refusal() is None
    writer.close()
    records, told = read_all(tmp_path)
    assert (len(records), told) == (2 * begun, [])


async def test_a_failed_write_is_final(tmp_path, opened, settled, monkeypatch) -> None:
    def fail(_file):
        raise OSError(errno.EIO, "Input/output error")

    writer = open_writer(tmp_path, kernel=False)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        with pytest.raises(JournalBroken):
            await writer.append_durable(settled(1))
    with pytest.raises(JournalBroken):
        writer.append(opened(2))
    with pytest.raises(JournalBroken):
        await writer.flush()
    assert "Input/output" in writer.refusal()
    writer.close()


async def test_closing_ends_every_wait(tmp_path, settled, kernel) -> None:
    writer = open_writer(tmp_path, kernel=kernel)
    first = asyncio.create_task(writer.append_durable(settled(1)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # its round has begun
    second = asyncio.create_task(writer.append_durable(settled(2)))
    await asyncio.sleep(0)
    writer.close()
    await first
    with pytest.raises(JournalBroken):
        await second
    with pytest.raises(JournalBroken):
        await writer.flush()
    assert read_all(tmp_path) == ([settled(1), settled(2)], [])


async def test_a_cancelled_caller_leaves_its_record(tmp_path, settled, kernel) -> None:
    writer = open_writer(tmp_path, kernel=kernel)
    task = asyncio.create_task(writer.append_durable(settled(1)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await writer.append_durable(settled(2))
    writer.close()
    assert read_all(tmp_path) == ([settled(1), settled(2)], [])


async def test_many_waiters_share_few_rounds(tmp_path, settled, kernel) -> None:
    writer = open_writer(tmp_path, kernel=kernel)
    begun, start = [], writer._behind._writer.start_write
    writer._behind._writer.start_write = lambda *given: (begun.append(1), start(*given))
    await asyncio.gather(*(writer.append_durable(settled(number)) for number in range(200)))
    assert 1 <= len(begun) <= 3
    writer.close()


WORKER = """
import asyncio, sys
from pathlib import Path
from ledger.journals.journal import JournalWriter
from ledger.journals.records import RequestRefused

def record(number):
    return RequestRefused(f"r{number}", number, "k", "t", "o", "m", "p", "budget", 429)

async def main():
    writer = JournalWriter(Path(sys.argv[1]), "w0", segment_bytes=65536)
    assert writer.attach(asyncio.get_running_loop(), sys.argv[2])
    for number in range(10**9):
        writer.append(record(number))
        if number % 50 == 0:
            print(number, flush=True)
        if number % 20 == 0:
            await writer.flush()

asyncio.run(main())
"""


@pytest.mark.parametrize("way", ["kernel", "thread"])
def test_what_was_put_survives_sigkill(tmp_path, way) -> None:
    acknowledged = 0
    for _ in range(4):
        program = textwrap.dedent(WORKER)
        process = warmstart.programs().open([tmp_path, way], program=program)
        for _ in range(20):
            last = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        last = max([last, *map(int, process.stdout.read().split())])
        process.stdout.close()
        process.wait()
        acknowledged += last + 1
    records, told = read_all(tmp_path)
    assert told == []
    assert len({record.request_id for record in records}) > 100
    assert len(records) >= acknowledged
