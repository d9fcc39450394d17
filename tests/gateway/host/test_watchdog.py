"""A telemetry that hangs is ended; one that speaks, or has not spoken yet, is left in peace."""

import asyncio

import pytest

from gateway.clock import Clock
from gateway.fleet.peers.peer_load import PeerEngineLoad
from gateway.fleet.peers.row import PeerLoadRow
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host import watchdog
from gateway.host.watchdog import HUNG_S, watch, watch_peers
from gateway.table_layout import LoadCell, TableLayout


class Life:
    """What the watchdog sees of a child."""

    def __init__(self, now: list[float]) -> None:
        self._now = now
        self.lives, self.kills, self.began_s = 1, 0, now[0]

    def restart(self) -> None:
        self.kills += 1
        self.lives += 1
        self.began_s = self._now[0]


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """Runs the watchdog over moments of a clock of its own; `speaks`: when telemetry is heard."""
    monkeypatch.setattr(watchdog, "LOOK_S", 0)
    board = SharedLoadTable(tmp_path / "board", TableLayout(workers=1, engines=(), apis=()))

    async def run(moments: int, speaks) -> tuple[int, list[str]]:
        said, now = [], [1.0]
        life = Life(now)

        def now_s() -> float:
            if now[0] < moments:
                now[0] += 1.0
                if speaks(now[0]):
                    board.record_alive(now[0])
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
    assert said == [f"restarting the telemetry process: it did not respond for {HUNG_S + 1:.0f} s"]


async def test_one_that_speaks_is_left_in_peace(watched) -> None:
    assert await watched(60, lambda at_s: at_s % 5 == 0) == (0, [])


async def test_one_that_has_not_spoken_yet_is_still_being_started(watched) -> None:
    assert await watched(60, lambda _: False) == (0, [])


async def test_one_that_was_heard_before_the_first_look_at_its_life_is_ended(tmp_path, monkeypatch):
    """The host stood still meanwhile: whoever dated a life from that look never ended it."""
    monkeypatch.setattr(watchdog, "LOOK_S", 0)
    layout = TableLayout(workers=1, engines=(), apis=())
    board, now, said = SharedLoadTable(tmp_path / "board", layout), [1.0], []
    life = Life(now)
    life.lives = 0
    looks = 0

    def now_s() -> float:
        nonlocal looks
        looks += 1
        if looks == 2:
            life.lives, life.began_s = 1, 1.5
            board.record_alive(2.0)
            now[0] = 8.0
        elif looks > 2:
            now[0] += 1.0
        return now[0]

    task = asyncio.create_task(
        watch(life, board, Clock(now_s=now_s, wall_us=lambda: 0), said.append)
    )
    while now[0] < 20:  # noqa: ASYNC110  (a clock of its own)
        await asyncio.sleep(0)
    task.cancel()
    assert life.kills == 1
    board.close()


@pytest.fixture
def exchanging(tmp_path, monkeypatch):
    """Likewise for the exchange with other hosts, a quarter of a second a moment."""
    monkeypatch.setattr(watchdog, "PEERS_LOOK_S", 0)
    layout = TableLayout(workers=1, engines=("pool:a/0",), apis=(), peers=True)
    board = SharedLoadTable(tmp_path / "shared", layout)
    row = PeerLoadRow(board)

    async def run(moments: int, speaks) -> tuple[int, list[float]]:
        counted, now = [], [0.0]
        life = Life(now)

        def now_s() -> float:
            if now[0] < moments:
                counted.append(board.loads(0)[LoadCell.SEQUENCES])
                now[0] += 0.25
                if speaks(now[0]):
                    row.write(0, PeerEngineLoad(2), now[0])
                    row.record_alive(now[0] - 0.01, 1)
            return now[0]

        clock = Clock(now_s=now_s, wall_us=lambda: 0)
        task = asyncio.create_task(watch_peers(life, board, clock, lambda _: None))
        while now[0] < moments:  # noqa: ASYNC110  (a clock of its own)
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        return life.kills, counted

    yield run
    board.close()


async def test_what_a_hung_exchange_heard_is_dropped_and_it_is_ended_once(exchanging) -> None:
    kills, counted = await exchanging(30, lambda at_s: at_s < 5)
    assert kills == 1
    assert set(counted[1:20]) == {2.0}
    assert set(counted[24:]) == {0.0}


async def test_an_exchange_that_speaks_or_is_started_is_left_in_peace(exchanging) -> None:
    assert (await exchanging(30, lambda _: True))[0] == 0
    assert (await exchanging(30, lambda at_s: at_s > 20))[0] == 0
