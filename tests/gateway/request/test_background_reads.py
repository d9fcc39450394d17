"""Reading on without a client: so many at once, for so long, and nothing is left behind."""

import asyncio
from types import SimpleNamespace

import pytest

from gateway.request.background_reads import READ_S, READS_LIMIT, BackgroundReads


async def held() -> None:
    await asyncio.Event().wait()


@pytest.fixture
async def response():
    task = asyncio.create_task(held())
    await asyncio.sleep(0)
    yield SimpleNamespace(task=task, on_leave=None)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_the_limits_are_those_that_are_promised() -> None:
    reads = BackgroundReads()
    assert (reads.limit, reads.read_s) == (READS_LIMIT, READ_S) == (64, 30.0)


async def test_a_client_may_leave_within_the_context_alone(response) -> None:
    reads = BackgroundReads()
    with reads.allow(response):
        assert response.on_leave is not None
        assert reads.open == 0
    assert response.on_leave is None


async def test_one_too_many_has_no_room_until_another_one_ends(response) -> None:
    reads = BackgroundReads(limit=2)
    others = [SimpleNamespace(task=response.task, on_leave=None) for _ in range(2)]
    with reads.allow(others[0]):
        with reads.allow(others[1]), reads.allow(response):
            assert [each.on_leave() for each in (*others, response)] == [True, True, False]
            assert reads.open == 2
        assert reads.open == 1
        with reads.allow(response):
            assert response.on_leave()
    assert reads.open == 0


async def test_a_read_that_lasts_too_long_is_cancelled(response) -> None:
    reads = BackgroundReads(read_s=0.0)
    with reads.allow(response):
        assert response.on_leave()
        with pytest.raises(asyncio.CancelledError):
            await response.task


async def test_a_read_that_ended_is_not_cancelled_later(response) -> None:
    reads = BackgroundReads(read_s=0.0)
    with reads.allow(response):
        assert response.on_leave()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not response.task.cancelling()


async def test_whatever_ends_it_gives_the_place_back(response) -> None:
    reads = BackgroundReads()

    async def fail() -> None:
        with reads.allow(response):
            assert response.on_leave()
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert (reads.open, response.on_leave) == (0, None)
