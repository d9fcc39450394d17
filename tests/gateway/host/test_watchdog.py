"""A telemetry that hangs is ended; one that speaks, or has not spoken yet, is left in peace."""

import asyncio

import pytest

from gateway.clock import Clock
from gateway.host import watchdog
from gateway.host.watchdog import HUNG_S, watch
from gateway.targets.slots import Board, Layout


class Life:
    """What the watchdog sees of a child."""

    def __init__(self) -> None:
        self.lives, self.kills = 1, 0

    def restart(self) -> None:
        self.kills += 1
        self.lives += 1


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """Runs the watchdog over moments of a clock of its own; `speaks`: when telemetry is heard."""
    monkeypatch.setattr(watchdog, "LOOK_S", 0)
    board = Board(tmp_path / "board", Layout(workers=1, engines=(), apis=()))

    async def run(moments: int, speaks) -> tuple[int, list[str]]:
        life, said, now = Life(), [], [1.0]

        def now_s() -> float:
            if now[0] < moments:
                now[0] += 1.0
                if speaks(now[0]):
                    board.alive(now[0])
            return now[0]

        clock = Clock(now_s=now_s, wall_us=lambda: 0)
        task = asyncio.create_task(watch(life, board, clock, said.append))
        while now[0] < moments:  # noqa: ASYNC110  (a clock of its own)
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        return life.kills, said

    yield run
    board.close()


async def test_one_that_fell_silent_is_ended_once(watched) -> None:
    kills, said = await watched(30, lambda at_s: at_s < 10)
    assert kills == 1
    assert said == [f"telemetry was silent for {HUNG_S + 1:.0f} s: it is ended and started again"]


async def test_one_that_speaks_is_left_in_peace(watched) -> None:
    assert await watched(60, lambda at_s: at_s % 5 == 0) == (0, [])


async def test_one_that_has_not_spoken_yet_is_still_being_started(watched) -> None:
    assert await watched(60, lambda _: False) == (0, [])
