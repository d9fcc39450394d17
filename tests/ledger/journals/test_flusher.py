"""Rounds of flushes: told of in the loop, one by one, with what failed; whoever does them."""

import asyncio
import errno
import os

import pytest

from ledger.journals.aio import AioContext
from ledger.journals.flusher import KernelFlusher, ThreadFlusher, best

MAKERS = {
    "kernel": lambda: KernelFlusher(AioContext()),
    "thread": ThreadFlusher,
    "best": best,
}


@pytest.fixture(params=MAKERS)
def flusher(request):
    return MAKERS[request.param]()


@pytest.fixture
def file(tmp_path):
    file = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    yield file
    os.close(file)


async def flushed(flusher, files):
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()
    flusher.start_flush(files, loop, waiter.set_result)
    return await asyncio.wait_for(waiter, 10)


async def test_rounds_follow_each_other(flusher, file):
    for _ in range(20):
        os.write(file, b"x" * 100)
        assert await flushed(flusher, [file, file]) is None
    flusher.close()


async def test_what_cannot_be_flushed_is_told_and_the_next_round_is_not_spoilt(flusher, file):
    reading, writing = os.pipe()
    failure = await flushed(flusher, [file, writing])
    assert failure is not None
    assert failure.errno == errno.EINVAL  # a pipe has nothing to flush
    assert await flushed(flusher, [file]) is None
    flusher.close()
    os.close(reading)
    os.close(writing)


async def test_closing_waits_for_the_round_and_its_end_is_told(flusher, file):
    told = []
    os.write(file, b"x")
    flusher.start_flush([file], asyncio.get_running_loop(), told.append)
    flusher.close()
    await asyncio.sleep(0)
    assert told == [None]


def test_closing_after_its_loop_ended(flusher, file):
    async def once():
        assert await flushed(flusher, [file]) is None

    asyncio.run(once())
    flusher.close()


async def test_a_failure_that_comes_later_is_the_rounds_own(file):
    """The kernel may take an operation and fail at it: the disk's own error."""

    class FailingContext(AioContext):
        results = iter([-errno.EIO, 0])

        def reap_operations(self, *, wait):
            return [-next(self.results) for _ in super().reap_operations(wait=wait)]

    flusher = KernelFlusher(FailingContext())
    failure = await flushed(flusher, [file])
    assert failure is not None
    assert failure.errno == errno.EIO
    assert await flushed(flusher, [file]) is None
    flusher.close()


async def test_what_the_kernel_does_not_take_a_thread_does(file):
    class RefusingContext(AioContext):
        def fdatasync(self, file):
            raise OSError(errno.EAGAIN, "no room")

    done = []
    flusher = KernelFlusher(RefusingContext(), ThreadFlusher(done.append))
    assert await flushed(flusher, [file]) is None
    assert await flushed(flusher, [file]) is None
    assert done == [[file], [file]]
    flusher.close()
