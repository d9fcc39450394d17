"""Engines that say nothing: who waits there is moved, nobody else goes there, one asks again."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from backends.errors import FirstTokenTimeout
from gateway.clock import Clock
from gateway.fleet.circuit_breaker import is_silent
from gateway.fleet.shared_load import SharedLoadTable
from gateway.request import silent_engine
from gateway.request.silent_engine import (
    ASK_AGAIN_LIMIT_S,
    ASK_AGAIN_S,
    IDLE_LOOKS,
    LATE_S,
    LOOK_S,
    PATIENCE_S,
    UNFORECAST_S,
    SilentEngineDetector,
    silence_timeout_s,
)
from gateway.table_layout import LoadCell, TableLayout
from router.stages import StageCause


@dataclass
class Time:
    now_s: float = 1000.0


@dataclass
class AskedAttempt:
    """As much of an attempt as is looked at."""

    dispatched_s: float
    ttft_ms: float | None = 50.0
    tpot_ms: float | None = None
    stream: bool = True
    max_tokens: int | None = None
    own: bool = True
    last: bool = False
    first_token_s: float | None = None
    row: int = 0
    asked_s: float = field(init=False)
    plan: SimpleNamespace = field(init=False)
    step: SimpleNamespace = field(init=False)

    def __post_init__(self) -> None:
        self.asked_s = self.dispatched_s
        target = SimpleNamespace(row=self.row)
        candidate = SimpleNamespace(output_cap=None)
        verdict = SimpleNamespace(ttft_ms=self.ttft_ms, tpot_ms=self.tpot_ms, candidate=candidate)
        self.step = SimpleNamespace(frozen=SimpleNamespace(target=target), verdict=verdict)
        asked = SimpleNamespace(stream=self.stream)
        request = SimpleNamespace(max_tokens=self.max_tokens)
        self.plan = SimpleNamespace(asked=asked, request=request)

    def leads_on(self, _cause: StageCause) -> bool:
        return not self.last


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def board(tmp_path: Path):
    board = SharedLoadTable(
        tmp_path / "board", TableLayout(workers=2, engines=("pool:a/0", "pool:a/1"), apis=())
    )
    yield board
    board.close()


@pytest.fixture
def silences(board: SharedLoadTable, time: Time) -> SilentEngineDetector:
    return SilentEngineDetector(board, 0, Clock(now_s=lambda: time.now_s))


async def waits(silences: SilentEngineDetector, asked: AskedAttempt) -> str:
    try:
        with silences.watch_attempt(asked, asyncio.current_task()):  # type: ignore[arg-type]
            await asyncio.Event().wait()
    except FirstTokenTimeout:
        return "moved"
    return "answered"


async def passes(silences: SilentEngineDetector, time: Time, seconds: float) -> None:
    for _ in range(round(seconds / LOOK_S)):
        time.now_s += LOOK_S
        silences.check_engines()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


def hears(board: SharedLoadTable, time: Time, worker: int = 1) -> None:
    board.cells[board.load_row(worker, 0) + LoadCell.HEARD_S] = time.now_s


def run(work) -> None:
    asyncio.run(work)


def test_who_hears_nothing_in_time_is_moved_and_everybody_stays_away(board, silences, time) -> None:
    async def play() -> None:
        create_task = asyncio.create_task(waits(silences, AskedAttempt(time.now_s)))
        await passes(silences, time, PATIENCE_S)
        assert not create_task.done()
        assert not is_silent(board.loads(0), time.now_s)
        await passes(silences, time, 0.4)
        assert await create_task == "moved"
        assert is_silent(board.loads(0), time.now_s)
        assert not is_silent(board.loads(1), time.now_s)
        time.now_s += ASK_AGAIN_S
        assert not is_silent(board.loads(0), time.now_s), "somebody asks"
        board.cells[board.load_row(1, 0) + LoadCell.QUEUED_SEQUENCES] = 1.0
        assert is_silent(board.loads(0), time.now_s), "and the others wait for what comes of it"
        hears(board, time)
        assert not is_silent(board.loads(0), time.now_s)

    run(play())


@pytest.mark.parametrize(
    "asked",
    [
        AskedAttempt(1000.0, last=True),  # nowhere else to go
        AskedAttempt(1000.0, own=False),  # an API: its deadlines are its own
        AskedAttempt(1000.0, first_token_s=1000.1),
        AskedAttempt(1000.0, ttft_ms=5000.0),  # a long prompt, as was said
        AskedAttempt(1000.0, ttft_ms=None),
        AskedAttempt(
            1000.0, stream=False, tpot_ms=20.0, max_tokens=500
        ),  # heard of when it is whole
    ],
)
def test_who_is_no_evidence_goes_on_waiting(board, silences, time, asked: AskedAttempt) -> None:
    async def play() -> None:
        create_task = asyncio.create_task(waits(silences, asked))
        await passes(silences, time, 3.0)
        assert not create_task.done()
        assert not is_silent(board.loads(0), time.now_s)
        create_task.cancel()
        await asyncio.gather(create_task, return_exceptions=True)

    run(play())


def test_an_engine_that_says_anything_to_anybody_is_waited_for(board, silences, time) -> None:
    async def play() -> None:
        create_task = asyncio.create_task(waits(silences, AskedAttempt(time.now_s)))
        for _ in range(10):
            await passes(silences, time, 0.5)
            hears(board, time)
        assert not create_task.done()
        create_task.cancel()
        await asyncio.gather(create_task, return_exceptions=True)

    run(play())


def test_a_process_that_stood_still_blames_nobody(board, silences, time) -> None:
    async def play() -> None:
        create_task = asyncio.create_task(waits(silences, AskedAttempt(time.now_s)))
        await asyncio.sleep(0)
        time.now_s += 20.0 + LATE_S
        silences.check_engines()
        await asyncio.sleep(0)
        assert not create_task.done()
        create_task.cancel()
        await asyncio.gather(create_task, return_exceptions=True)

    run(play())


def test_whoever_asks_in_vain_makes_the_next_wait_longer(board, silences, time) -> None:
    async def play() -> None:
        pauses = []
        for _ in range(6):
            create_task = asyncio.create_task(waits(silences, AskedAttempt(time.now_s)))
            await passes(silences, time, PATIENCE_S + 0.5)
            assert await create_task == "moved"
            pauses.append(board.loads(0)[LoadCell.ASK_AT_S] - board.loads(0)[LoadCell.SILENT_S])
            time.now_s = board.loads(0)[LoadCell.ASK_AT_S] + LOOK_S
            silences.check_engines()
        assert pauses == pytest.approx([1.0, 2.0, 4.0, 8.0, 8.0, ASK_AGAIN_LIMIT_S])
        hears(board, time)
        time.now_s += 0.2
        silences.check_engines()
        create_task = asyncio.create_task(waits(silences, AskedAttempt(time.now_s)))
        await passes(silences, time, PATIENCE_S + 0.5)
        assert await create_task == "moved"
        loads = board.loads(0)
        assert loads[LoadCell.ASK_AT_S] - loads[LoadCell.SILENT_S] == pytest.approx(ASK_AGAIN_S)

    run(play())


def test_the_time_that_a_deadline_of_ones_own_takes_is_no_silence(silences, time) -> None:
    async def play() -> None:
        waiting = silences.watch_attempt(AskedAttempt(time.now_s), asyncio.current_task())  # type: ignore[arg-type]
        with pytest.raises(TimeoutError), waiting:
            raise TimeoutError

    run(play())


def test_patience_is_by_the_forecast() -> None:
    def of(**told) -> float:
        return silence_timeout_s(AskedAttempt(0.0, **told))  # type: ignore[arg-type]

    assert of(ttft_ms=100.0) == pytest.approx(PATIENCE_S + 0.3)
    assert of(ttft_ms=None) == UNFORECAST_S
    assert of(ttft_ms=100.0, tpot_ms=10.0) == pytest.approx(PATIENCE_S + 0.3)
    whole = of(ttft_ms=100.0, tpot_ms=10.0, stream=False, max_tokens=50)
    assert whole == pytest.approx(PATIENCE_S + 1.8)


async def test_looks_end_while_nobody_waits_and_begin_with_the_next(
    board, silences, time, monkeypatch
) -> None:
    """Ten looks a second were a third of what an idle worker did."""
    looks: list[float] = []
    look = silences.check_engines

    def counted() -> None:
        looks.append(time.now_s)
        look()

    monkeypatch.setattr(silences, "check_engines", counted)
    monkeypatch.setattr(silent_engine, "LOOK_S", 0.0)

    async def passes_by(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)

    task = asyncio.create_task(silences.watch())
    await passes_by(10 * IDLE_LOOKS)
    assert len(looks) == IDLE_LOOKS
    time.now_s += 3600.0  # asleep, which is not standing still
    asking = asyncio.create_task(waits(silences, AskedAttempt(time.now_s)))
    await passes_by(10 * IDLE_LOOKS)
    assert len(looks) > 2 * IDLE_LOOKS, "looked at for as long as somebody waits"
    assert not asking.done()
    time.now_s += PATIENCE_S + 0.4
    silences._looked_s = time.now_s
    await passes_by(10)
    assert await asking == "moved"
    await passes_by(10 * IDLE_LOOKS)
    seen = len(looks)
    await passes_by(10 * IDLE_LOOKS)
    assert len(looks) == seen
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
