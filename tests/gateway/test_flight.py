"""Promises on the board: taken once, moved at the first token, given back whatever happens."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.flight import Flight
from gateway.slots import Board, Layout


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory):
    path: Path = tmp_path_factory.mktemp("board") / "board"
    board = Board(path, Layout(workers=1, engines=("pool:a/0",), apis=()))
    yield board
    board.close()


def flight(board: Board) -> Flight:
    return Flight(board, board.load_row(0, 0), prompt_tokens=100, promised_tokens=256, sequences=2)


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
