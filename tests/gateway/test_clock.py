"""Two clocks, never mixed: monotonic seconds for durations, wall microseconds for stamps."""

import asyncio
import selectors
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.clock import Clock, moment_text, next_tick


def test_the_clocks_are_the_hosts() -> None:
    clock = Clock()
    before_s, before_us = time.monotonic(), time.time_ns() // 1000
    assert before_s <= clock.now_s() <= time.monotonic()
    assert before_us <= clock.wall_us() <= time.time_ns() // 1000
    assert clock.boot() == Clock().boot()


def test_others_can_be_passed_in() -> None:
    clock = Clock(now_s=lambda: 1.5, wall_us=lambda: 7, boot=lambda: "b")
    assert (clock.now_s(), clock.wall_us(), clock.boot()) == (1.5, 7, "b")


def test_a_moment_is_told_in_utc_and_whole_seconds() -> None:
    assert moment_text(1_780_000_000_999_999) == "2026-05-28T20:26:40+00:00"


class InstantSelector(selectors.SelectSelector):
    """Waits by moving the time of its loop; `waits` are how often it did."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s, self.waits = 1_000.037, 0

    def select(self, timeout: float | None = None) -> list:
        if timeout:
            self.now_s += timeout
            self.waits += 1
        return super().select(0)


def run_instantly(work) -> InstantSelector:
    selector = InstantSelector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now_s  # type: ignore[method-assign]
    try:
        loop.run_until_complete(work(selector))
    finally:
        loop.close()
    return selector


def test_chores_of_one_process_wake_it_together() -> None:
    """Each on a timer of its own would wake it for itself: 20 + 10 + 5 + 5 times."""
    rounds: list[float] = []

    async def chore(period_s: float) -> None:
        while True:
            await next_tick(period_s)
            rounds.append(period_s)

    async def play(selector: InstantSelector) -> None:
        chores = [asyncio.create_task(chore(period_s)) for period_s in (0.25, 0.5, 1.0, 1.0)]
        begun = selector.waits
        while selector.now_s < 1_005.0:
            await next_tick(0.25)
        assert selector.waits - begun <= 21
        for task in chores:
            task.cancel()

    run_instantly(play)
    counts = {period_s: rounds.count(period_s) for period_s in (0.25, 0.5, 1.0)}
    assert counts == {0.25: pytest.approx(20, abs=1), 0.5: 10, 1.0: 10}


@given(
    st.sampled_from([0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0]),
    st.floats(0.0, 100.0),
    st.floats(0.0, 5.0),
)
def test_a_sleep_lasts_about_a_period_and_ends_at_its_phase(period_s, begin_s, phase_s) -> None:
    async def play(selector: InstantSelector) -> None:
        selector.now_s += begin_s
        before_s = selector.now_s
        await next_tick(period_s, phase_s)
        slept_s = selector.now_s - before_s
        assert 0.1 * period_s - 1e-6 <= slept_s <= 1.1 * period_s + 2e-3
        beyond = (selector.now_s - phase_s) % period_s
        assert min(beyond, period_s - beyond) < 2e-3  # a selector counts whole milliseconds

    run_instantly(play)


async def test_no_period_is_no_wait() -> None:
    await next_tick(0.0)
