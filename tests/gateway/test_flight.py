"""Promises on the board: taken once, moved at the first token, given back whatever happens."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.flight import Flight, Promise
from gateway.slots import Board, Layout, Load
from router.types import StepModel


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory):
    path: Path = tmp_path_factory.mktemp("board") / "board"
    board = Board(path, Layout(workers=1, engines=("pool:a/0",), apis=()))
    yield board
    board.close()


def flight(board: Board) -> Flight:
    return Flight(board, 0, 0, Promise(prompt_tokens=100, kv_tokens=256, sequences=2))


def test_the_prompt_moves_from_the_queue_into_the_context(board: Board) -> None:
    one = flight(board)
    assert board.loads(0)[:4] == [2.0, 0.0, 100.0, 256.0]
    one.first_token()
    one.first_token()
    one.grew(3)
    assert board.loads(0)[:4] == [2.0, 103.0, 0.0, 256.0]
    one.land()
    assert board.loads(0)[:4] == [0.0, 0.0, 0.0, 0.0]


@given(st.lists(st.sampled_from(["first", "grow", "land"]), max_size=12))
def test_landing_leaves_nothing_behind(board: Board, events: list[str]) -> None:
    one, other = flight(board), flight(board)
    for event in events:
        if event == "first":
            one.first_token()
        elif event == "grow":
            one.grew(5)
        else:
            one.land()
    one.land()
    assert board.loads(0)[:4] == [2.0, 0.0, 100.0, 256.0]
    other.land()
    assert board.loads(0)[:4] == [0.0, 0.0, 0.0, 0.0]


def test_the_pace_is_compared_with_the_model_at_the_mean_load(board: Board) -> None:
    one, other = flight(board), flight(board)
    one.first_token()
    other.first_token()
    model = StepModel(a_s=0.01, b_s=0.001, c_s=1e-5, d_s=1e-4, t0_s=0.0)
    before = board.loads(0)
    one.paced(model, observed_s=0.5, steps=10)
    after = board.loads(0)
    # Sequences: 4 at both ends; context: 100 at the first token of `one`, 200 at its end; the
    # other's 100 prompt tokens were prefilled between.
    predicted = 10 * (0.01 + 4 * 0.001 + 150 * 1e-5) + 100 * 1e-4
    assert after[Load.OBSERVED_STEP_S_TOTAL] - before[Load.OBSERVED_STEP_S_TOTAL] == 0.5
    assert after[Load.PREDICTED_STEP_S_TOTAL] - before[Load.PREDICTED_STEP_S_TOTAL] == (
        pytest.approx(predicted)
    )
    one.paced(model, observed_s=0.5, steps=0)
    assert board.loads(0)[Load.OBSERVED_STEP_S_TOTAL] == after[Load.OBSERVED_STEP_S_TOTAL]
    one.land()
    other.land()
