"""Groups reach their segment by the kernel or a thread, on a full disk by what was kept."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from ledger.journals.group_writer import GroupWriter, SegmentWrite, create_segment
from ledger.journals.homes import segment_path
from ledger.journals.layout import HEADER_BYTES, SegmentHeader, parse_header
from ledger.journals.pending import PendingFrames
from ledger.journals.reserve import DiskReserve
from ledger.journals.uring import UringWrites


class Desk:
    """A writer with a group of some bytes, `write_all` of which returns the failure or None."""

    def __init__(self, home: Path, uring: UringWrites | None) -> None:
        self.reserve = DiskReserve(home / "reserve")
        self.reserve.keep(1)
        self.writer, self.home = GroupWriter(self.reserve, uring), home
        pending = PendingFrames.make(home)
        assert pending is not None
        self._pending = pending
        self.data = os.urandom(3000)

    def write_of(self, *, file: int | None, is_plain: bool = True) -> SegmentWrite:
        self._pending.begin_group(1, HEADER_BYTES, 1)
        end = self._pending.end + len(self.data)
        self._pending.memory[self._pending.end : end] = self.data
        self._pending.end, self._pending.size = end, len(self.data)
        header = SegmentHeader("w0-a", 1, 1, 1)
        return SegmentWrite(self.home, header, file, self._pending.take_group(), is_plain)

    async def end(self, write: SegmentWrite) -> OSError | None:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[OSError | None] = loop.create_future()
        self.writer.start_write(write, loop, ended.set_result)
        failure = await ended
        write.group.data.release()
        return failure

    @property
    def content(self) -> bytes:
        return segment_path(self.home, 1).read_bytes()[HEADER_BYTES:]


@pytest.fixture(params=["kernel", "thread"])
def desk(tmp_path, request):
    uring = None
    if request.param == "kernel":
        try:
            uring = UringWrites()
        except OSError as refused:
            pytest.skip(f"io_uring: {refused}")
    made = Desk(tmp_path, uring)
    yield made
    made.writer.close()


async def test_a_group_is_in_its_segment_when_its_end_is_told(desk) -> None:
    write = desk.write_of(file=None)
    assert await desk.end(write) is None
    assert desk.content == desk.data
    header = parse_header(segment_path(desk.home, 1).read_bytes()[:HEADER_BYTES])
    assert header == SegmentHeader("w0-a", 1, 1, 1)
    again = desk.write_of(file=write.file)
    desk.data = bytes(again.group.data)
    assert await desk.end(again) is None
    assert desk.content == desk.data


async def test_nothing_to_write_is_flushed_all_the_same(desk, monkeypatch) -> None:
    flushed = []
    monkeypatch.setattr(os, "fdatasync", flushed.append)
    desk.data = b""
    file = create_segment(desk.home, SegmentHeader("w0-a", 1, 1, 1))
    flushed.clear()
    assert await desk.end(desk.write_of(file=file, is_plain=False)) is None
    assert flushed == [file]
    os.close(file)


async def test_a_full_disk_gives_up_what_is_kept(desk, monkeypatch) -> None:
    real, kept = os.pwrite, desk.reserve

    def pwrite(file, data, offset):
        if kept.kept_bytes:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(file, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    assert await desk.end(desk.write_of(file=None)) is None
    assert kept.kept_bytes == 0
    assert desk.content == desk.data


async def test_what_a_full_disk_refuses_may_be_tried_again(desk, monkeypatch) -> None:
    def pwrite(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    write = desk.write_of(file=None)
    kept = bytes(write.group.data)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        assert (await desk.end(write)).errno == errno.ENOSPC
    assert write.is_refused
    assert not segment_path(desk.home, 1).exists()  # no segment without its header
    desk.data = kept
    again = desk.write_of(file=None)
    assert await desk.end(again) is None
    assert not again.is_refused


async def test_the_kernels_full_disk_is_handed_to_the_thread(desk) -> None:
    """/dev/full refuses whoever writes: the kernel's own refusal leads to the thread's."""
    full = os.open("/dev/full", os.O_WRONLY)
    write = desk.write_of(file=full)
    assert (await desk.end(write)).errno == errno.ENOSPC
    os.close(full)
    assert write.is_refused
    assert desk.reserve.kept_bytes == 0


async def test_another_failure_is_final(desk, monkeypatch) -> None:
    def fail(_file):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    file = os.open(desk.home / "file", os.O_RDWR | os.O_CREAT)
    write = desk.write_of(file=file, is_plain=False)
    assert (await desk.end(write)).errno == errno.EIO
    assert not write.is_refused
    os.close(file)


async def test_closing_waits_for_what_is_under_way(desk) -> None:
    file = create_segment(desk.home, SegmentHeader("w0-a", 1, 1, 1))
    ended = []
    write = desk.write_of(file=file)
    desk.writer.start_write(write, asyncio.get_running_loop(), ended.append)
    desk.writer.close()
    assert desk.content == desk.data
    await asyncio.sleep(0)
    assert ended == [None]
    desk.writer = GroupWriter(desk.reserve, None)
    os.close(file)
