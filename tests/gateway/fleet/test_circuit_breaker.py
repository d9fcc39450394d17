"""Left alone after failures, asked by one request at a time, and taken back step by step."""

from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.fleet.circuit_breaker import (
    BACK_OFF_LIMIT_S,
    BACK_OFF_S,
    CIRCUIT_FAILURES,
    EngineCircuits,
    back_off_s,
)
from gateway.fleet.shared_load import SharedLoadTable
from gateway.fleet.target_stats import TargetStats
from gateway.fleet.target_views import LiveApiView
from gateway.table_layout import LoadCell, TableLayout


class Time:
    now_s = 1000.0


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def board(tmp_path: Path):
    board = SharedLoadTable(tmp_path / "board", TableLayout(workers=2, engines=(), apis=("x/m",)))
    yield board
    board.close()


@pytest.fixture
def workers(board: SharedLoadTable, time: Time) -> list[TargetStats]:
    clock = Clock(now_s=lambda: time.now_s)
    return [TargetStats(board, worker, clock) for worker in range(2)]


def opened(workers: list[TargetStats], time: Time) -> None:
    """The circuit opened by the first worker, its silence over."""
    for _ in range(CIRCUIT_FAILURES):
        workers[0].api(0, ttft_s=None, tpot_s=None, ok=False)
    time.now_s += BACK_OFF_S + 0.1


def taken(board: SharedLoadTable, workers: list[TargetStats], time: Time) -> list:
    """What leaves when as much is asked for as the circuit lets through, at both workers."""
    passages = []
    while not LiveApiView(board, 0).snapshot(time.now_s, 0).circuit_open and len(passages) < 1000:
        passages.append(workers[len(passages) % 2].begin_call(0, 1))
    return passages


def test_the_silence_doubles_up_to_a_minute() -> None:
    waits = [back_off_s(CIRCUIT_FAILURES + further) for further in range(6)]
    assert waits == [5.0, 10.0, 20.0, 40.0, 60.0, BACK_OFF_LIMIT_S]


def test_after_the_silence_one_asks_and_the_others_wait(board, workers, time) -> None:
    opened(workers, time)
    (probe,) = taken(board, workers, time)
    assert LiveApiView(board, 0).snapshot(time.now_s, 0).circuit_open
    probe.release()  # it failed without an answer
    assert len(taken(board, workers, time)) == 1


def test_answers_let_more_and_more_through(board, workers, time) -> None:
    """Also when another worker than the one that saw the failures got the answer."""
    opened(workers, time)
    (probe,) = taken(board, workers, time)
    workers[1].record_answer(0)
    probe.release()
    for elapsed_s, most in ((0.0, 1), (0.5, 2), (1.5, 8), (3.0, 64)):
        time.now_s = 1000.0 + BACK_OFF_S + 0.1 + elapsed_s
        passages = taken(board, workers, time)
        assert len(passages) == most, elapsed_s
        for passage in passages:
            passage.release()
    time.now_s += 10.0
    assert len(taken(board, workers, time)) == 1000


def test_a_failure_of_the_one_that_asks_begins_again(board, workers, time) -> None:
    opened(workers, time)
    workers[0].record_answer(0)
    time.now_s += 2.0
    workers[0].api(0, ttft_s=None, tpot_s=None, ok=False)
    assert taken(board, workers, time) == []
    time.now_s += 2 * BACK_OFF_S + 0.1
    assert len(taken(board, workers, time)) == 1


def test_those_on_their_way_when_it_opened_do_not_prolong_the_silence(board, workers, time) -> None:
    """A second's trouble fails whatever is out: fifty at once say no more than five."""
    for _ in range(10 * CIRCUIT_FAILURES):
        workers[0].api(0, ttft_s=None, tpot_s=None, ok=False)
    engines = EngineCircuits(Clock(now_s=lambda: time.now_s))
    for _ in range(10 * CIRCUIT_FAILURES):
        engines.record_outcome(0, ok=False)
    time.now_s += BACK_OFF_S + 0.1
    assert len(taken(board, workers, time)) == 1
    assert not engines.is_shunned(0, [0.0] * len(LoadCell), time.now_s)
    workers[0].api(0, ttft_s=None, tpot_s=None, ok=False)  # who asked, and still it fails
    engines.record_outcome(0, ok=False)
    time.now_s += BACK_OFF_S + 0.1
    assert LiveApiView(board, 0).snapshot(time.now_s, 0).circuit_open
    assert engines.is_shunned(0, [0.0] * len(LoadCell), time.now_s)


def test_who_never_failed_has_no_limit(board, workers, time) -> None:
    workers[0].record_answer(0)
    assert len(taken(board, workers, time)) == 1000


def test_without_the_slow_start_all_that_waited_comes_at_once(
    board, workers, time, monkeypatch
) -> None:
    """The negative control."""
    monkeypatch.setattr("gateway.fleet.target_stats.is_warming", lambda *_: False)
    opened(workers, time)
    assert len(taken(board, workers, time)) == 1000


def test_an_engine_that_fails_is_left_alone_and_asked_by_one(time) -> None:
    engines = EngineCircuits(Clock(now_s=lambda: time.now_s))
    idle, busy = [0.0] * len(LoadCell), [1.0] + [0.0] * (len(LoadCell) - 1)
    for _ in range(CIRCUIT_FAILURES - 1):
        engines.record_outcome(0, ok=False)
    assert not engines.is_shunned(0, busy, time.now_s)
    engines.record_outcome(0, ok=False)
    assert engines.is_shunned(0, idle, time.now_s)
    assert not engines.is_shunned(1, idle, time.now_s)
    time.now_s += BACK_OFF_S
    assert not engines.is_shunned(0, idle, time.now_s)
    assert engines.is_shunned(0, busy, time.now_s), "while one asks, the others wait"
    engines.record_outcome(0, ok=False)
    assert engines.is_shunned(0, idle, time.now_s + BACK_OFF_S)
    engines.record_outcome(0, ok=True)
    assert not engines.is_shunned(0, busy, time.now_s)
