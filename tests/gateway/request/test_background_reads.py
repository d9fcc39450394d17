"""Reading on without a client: so many at once, for so long, and nothing is left behind."""

import asyncio
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.request.background_reads import (
    READ_S,
    READS_LIMIT,
    WHOLE_LIMIT_BYTES,
    BackgroundRead,
    BackgroundReads,
)


async def held() -> None:
    await asyncio.Event().wait()


def attempt(team="a", held_pusd=0):
    candidate = SimpleNamespace(bound_pusd=held_pusd)
    step = SimpleNamespace(frozen=SimpleNamespace(candidate=candidate))
    return SimpleNamespace(plan=SimpleNamespace(identity=SimpleNamespace(team_id=team)), step=step)


@pytest.fixture
async def response():
    task = asyncio.create_task(held())
    await asyncio.sleep(0)
    yield SimpleNamespace(task=task, on_leave=None, keeps=None)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_the_limits_are_those_that_are_promised() -> None:
    reads = BackgroundReads()
    assert (reads.limit, reads.read_s) == (READS_LIMIT, READ_S) == (64, 30.0)


async def test_a_client_may_leave_within_the_context_alone(response) -> None:
    reads = BackgroundReads()
    with reads.allow(response, attempt()):
        assert response.on_leave is not None
        assert reads.open == 0
    assert response.on_leave is None


async def test_one_too_many_has_no_room_until_another_one_ends(response) -> None:
    reads = BackgroundReads(limit=2)
    others = [SimpleNamespace(task=response.task, on_leave=None, keeps=None) for _ in range(2)]
    with reads.allow(others[0], attempt()):
        with reads.allow(others[1], attempt()), reads.allow(response, attempt()):
            assert [each.on_leave() for each in (*others, response)] == [True, True, False]
            assert reads.open == 2
        assert reads.open == 1
        with reads.allow(response, attempt()):
            assert response.on_leave()
    assert reads.open == 0


async def test_a_read_that_lasts_too_long_is_cancelled(response) -> None:
    reads = BackgroundReads(read_s=0.0)
    with reads.allow(response, attempt()):
        assert response.on_leave()
        with pytest.raises(asyncio.CancelledError):
            await response.task


async def test_a_read_that_ended_is_not_cancelled_later(response) -> None:
    reads = BackgroundReads(read_s=0.0)
    with reads.allow(response, attempt()):
        assert response.on_leave()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not response.task.cancelling()


async def test_whatever_ends_it_gives_the_place_back(response) -> None:
    reads = BackgroundReads()

    async def fail() -> None:
        with reads.allow(response, attempt()):
            assert response.on_leave()
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert (reads.open, response.on_leave) == (0, None)


class LeavingClient:
    """A response whose client leaves; its task only notes that it was cancelled."""

    def __init__(self) -> None:
        self.task, self.on_leave, self.is_cut = self, None, False

    def cancel(self) -> None:
        self.is_cut = True


def hang_up(reads: BackgroundReads, *asked) -> tuple[BackgroundRead, LeavingClient]:
    leaving = LeavingClient()
    scope = reads.allow(leaving, attempt(*asked))
    scope.__enter__()
    if not leaving.on_leave():
        leaving.cancel()
    return scope, leaving


async def read_of(reads: BackgroundReads, hangups) -> list[bool]:
    """Who hangs up in turn; returns which of them are being read in the end."""
    found = [hang_up(reads, *asked) for asked in hangups]
    assert reads.open == sum(not leaving.is_cut for _, leaving in found) <= reads.limit
    for scope, _ in found:
        scope.__exit__(None, None, None)
    assert reads.open == 0
    return [not leaving.is_cut for _, leaving in found]


async def test_a_team_that_hangs_up_often_leaves_another_one_its_share() -> None:
    """One team took all the places: the next one's answer was booked at its hold."""
    read = await read_of(BackgroundReads(limit=8), [("a", 10)] * 20 + [("b", 10)] * 20)
    assert (sum(read[:20]), sum(read[20:])) == (4, 4)
    read = await read_of(BackgroundReads(limit=8), [("a", 10)] * 20 + [("b", 1)])
    assert (sum(read[:20]), read[-1]) == (7, True)


async def test_the_largest_holds_of_a_team_are_read() -> None:
    holds = [5, 1, 7, 3, 9, 2]
    assert await read_of(BackgroundReads(limit=3), [("a", hold) for hold in holds]) == [
        True, False, True, False, True, False,
    ]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=60))
def test_no_team_is_cut_below_its_share_by_another_one(hangups) -> None:
    read = asyncio.run(read_of(BackgroundReads(limit=6), hangups))
    asked, kept = Counter(team for team, _ in hangups), Counter()
    for (team, _), is_read in zip(hangups, read, strict=True):
        kept[team] += is_read
    for team in asked:
        assert kept[team] >= min(asked[team], 6 // len(asked))
    assert sum(kept.values()) == min(6, len(hangups)), "no place is left empty"


async def test_answers_beyond_what_each_may_have_share_what_there_is(response) -> None:
    reads, mib = BackgroundReads(shared_bytes=10 * WHOLE_LIMIT_BYTES), WHOLE_LIMIT_BYTES
    other = SimpleNamespace(task=response.task, on_leave=None, keeps=None)
    with reads.allow(response, attempt()):
        assert response.keeps is None, "its client is there"
        with reads.allow(other, attempt("b")):
            assert response.on_leave()
            assert other.on_leave()
            assert [response.keeps(size * mib) for size in (1, 4, 11, 12)] == [True] * 3 + [False]
            assert not other.keeps(2 * mib)
            assert other.keeps(mib), "so much has each"
            assert response.keeps(4 * mib)
            assert other.keeps(8 * mib)
        assert other.keeps is None
        assert response.keeps(11 * mib), "what ended keeps nothing"
