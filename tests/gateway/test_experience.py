"""What a worker learns of an API: latencies, failures in a row, silence that was asked for."""

import math
from pathlib import Path

import pytest

from gateway.candidates import api_state
from gateway.clock import Clock
from gateway.experience import CIRCUIT_FAILURES, Experience
from gateway.slots import Board, Layout


class Time:
    def __init__(self) -> None:
        self.now_s = 1000.0


@pytest.fixture
def board(tmp_path: Path):
    board = Board(tmp_path / "board", Layout(workers=2, engines=(), apis=("x/m",)))
    yield board
    board.close()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def experience(board: Board, time: Time) -> Experience:
    return Experience(board, 0, Clock(now_s=lambda: time.now_s))


def state(board: Board, time: Time):
    return api_state(board.experience(0), time.now_s)


def test_nothing_seen_is_nothing_known(board: Board, time: Time) -> None:
    unknown = state(board, time)
    assert unknown.ttft_median_ms is None
    assert unknown.requests_left is None
    assert not unknown.circuit_open


def test_medians_follow_what_was_seen(board: Board, time: Time, experience: Experience) -> None:
    for _ in range(50):
        experience.api(0, ttft_s=0.2, tpot_s=0.01, ok=True)
        experience.api(0, ttft_s=0.8, tpot_s=0.01, ok=True)
    learned = state(board, time)
    assert learned.ttft_median_ms == pytest.approx(400, rel=0.15)
    assert learned.ttft_sigma == pytest.approx(math.log(2), rel=0.2)
    assert learned.tpot_median_ms == pytest.approx(10)
    assert learned.tpot_sigma == pytest.approx(0, abs=1e-6)


def test_failures_in_a_row_open_the_circuit_and_one_success_closes_it(
    board: Board, time: Time, experience: Experience
) -> None:
    for _ in range(CIRCUIT_FAILURES - 1):
        experience.api(0, ttft_s=None, tpot_s=None, ok=False)
    assert not state(board, time).circuit_open
    experience.api(0, ttft_s=None, tpot_s=None, ok=False)
    assert state(board, time).circuit_open
    time.now_s += 5.1
    assert not state(board, time).circuit_open, "a probe is let through"
    experience.api(0, ttft_s=None, tpot_s=None, ok=False)
    time.now_s += 5.1
    assert state(board, time).circuit_open, "the silence doubles"
    time.now_s += 5.0
    experience.api(0, ttft_s=0.1, tpot_s=None, ok=True)
    experience.api(0, ttft_s=None, tpot_s=None, ok=False)
    assert not state(board, time).circuit_open


def test_a_wish_for_silence_is_heard_by_every_worker(
    board: Board, time: Time, experience: Experience
) -> None:
    experience.wait(0, 3.0)
    assert state(board, time).circuit_open
    time.now_s += 3.1
    assert not state(board, time).circuit_open


def test_rate_limit_room_is_passed_on(board: Board, time: Time, experience: Experience) -> None:
    experience.api(0, ttft_s=0.1, tpot_s=None, ok=True)
    assert state(board, time).requests_left is None
    experience.room(0, requests_left=3, tokens_left=None)
    assert state(board, time).requests_left == 3
    assert state(board, time).tokens_left is None
