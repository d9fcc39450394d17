"""Places are taken in turn by teams, and one team never has them all."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.sound.fair_places import FairPlaces

LONG_S = 60.0


class Work:
    """Holds a place until it is ended."""

    def __init__(self, places: FairPlaces, team: str, began: list[str]) -> None:
        self.team, self._ended = team, asyncio.Event()
        self.task = asyncio.create_task(self._run(places, began))

    async def _run(self, places: FairPlaces, began: list[str]) -> None:
        async with places.place(self.team, LONG_S):
            began.append(self.team)
            await self._ended.wait()

    async def end(self) -> None:
        self._ended.set()
        await self.task


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_one_team_leaves_a_place_for_others() -> None:
    places, began = FairPlaces(3, 2), []
    hostile = [Work(places, "a", began) for _ in range(5)]
    await settle()
    assert began == ["a", "a"]
    honest = Work(places, "b", began)
    await settle()
    assert began == ["a", "a", "b"]
    await honest.end()
    for work in hostile:
        work.task.cancel()


async def test_the_team_with_the_fewest_is_next_then_the_one_whose_turn_is_longest_ago() -> None:
    places, began = FairPlaces(1, 1), []
    works = []
    for team in ("a", "a", "a", "b", "c", "b"):
        works.append(Work(places, team, began))
        await settle()
    for _ in works:
        running = next(work for work in works if work.team == began[-1] and not work.task.done())
        await running.end()
        await settle()
    assert began == ["a", "a", "b", "c", "a", "b"]


async def test_who_waits_too_long_is_told_and_takes_no_place() -> None:
    places, began = FairPlaces(1, 1), []
    first = Work(places, "a", began)
    await settle()
    with pytest.raises(TimeoutError):
        async with places.place("b", 0.0):
            raise AssertionError
    await first.end()
    async with places.place("c", LONG_S):
        began.append("c")
    assert began == ["a", "c"]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12))
def test_every_place_comes_back(steps: list[tuple[str, bool]]) -> None:
    async def run() -> None:
        places, began = FairPlaces(3, 2), []
        works = [Work(places, team, began) for team, _ in steps]
        for work, (_, is_cancelled) in zip(works, steps, strict=True):
            await asyncio.sleep(0)
            if is_cancelled:
                work.task.cancel()
        for work in works:
            work._ended.set()
        await asyncio.gather(*(work.task for work in works), return_exceptions=True)
        again: list[str] = []
        held = [Work(places, team, again) for team in "abb"]
        await settle()
        assert sorted(again) == ["a", "b", "b"]
        for work in held:
            await work.end()

    asyncio.run(run())
