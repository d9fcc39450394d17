import asyncio
from types import SimpleNamespace

import pytest

from gateway.fleet.kv_transfers import LEAST, TransferTimes
from gateway.fleet.shared_load import SharedLoadTable
from gateway.request.load_tracker import LoadReservation, ReservedLoad
from gateway.request.prefill_leg import LegEnd, PrefillLeg
from gateway.table_layout import LoadCell, TableLayout
from router.types import PrefillForecast

FORECAST = PrefillForecast("pool:a/0", 60.0, 0.1, 0.05, 512, 0.03, 0.1, 0.0)
PARAMS = {"remote_host": "127.0.0.1"}


@pytest.fixture
def board(tmp_path):
    board = SharedLoadTable(tmp_path / "b", TableLayout(workers=1, engines=("pool:a/0",), apis=()))
    yield board
    board.close()


def leg(board, lease_s=30.0) -> PrefillLeg:
    times = TransferTimes(0.02, 1e-5)
    target = SimpleNamespace(name="pool:a/0", transfers=times, lease_s=lease_s)
    load = ReservedLoad(prompt_tokens=100, kv_tokens=112, sequences=1, hit_tokens=32)
    return PrefillLeg(target, None, FORECAST, LoadReservation(board, 0, 0, load), 1.0)


def held(board) -> dict[str, float]:
    loads = board.loads(0)
    cells = (
        *(LoadCell.SEQUENCES, LoadCell.CONTEXT_TOKENS, LoadCell.QUEUED_PREFILL_TOKENS),
        *(LoadCell.QUEUED_HIT_TOKENS, LoadCell.QUEUED_SEQUENCES, LoadCell.PROMISED_TOKENS),
    )
    return {cell.name: loads[cell] for cell in cells if loads[cell]}


def test_kv_is_promised_until_it_was_fetched(board) -> None:
    made = leg(board)
    assert held(board)["PROMISED_TOKENS"] == 112
    made.finish(1.1, PARAMS, 100)
    assert held(board) == {"PROMISED_TOKENS": 112}  # nothing runs there, and nothing is queued
    made.record_fetched(1.16)
    made.record_fetched(9.9)
    assert (held(board), made.read_s, made.end) == ({}, 1.16, LegEnd.DONE)
    assert made.target.transfers.observations == 1
    assert made.close(failed=False) is False


def test_what_was_not_read_is_released_at_once(board) -> None:
    made = leg(board)
    made.fail(1.1)
    assert (held(board), made.end) == ({}, LegEnd.FAILED)
    made.record_fetched(2.0)
    assert made.read_s is None


@pytest.mark.parametrize("handed", [False, True])
async def test_what_is_kept_for_nobody_is_held_until_its_lease_ends(board, handed) -> None:
    made = leg(board, lease_s=0.05)
    made.finish(1.1, PARAMS, 100)
    made.handed = handed
    assert made.close(failed=handed) is True
    assert held(board) == {"PROMISED_TOKENS": 112}
    async with asyncio.timeout(5):
        while held(board):  # noqa: ASYNC110  (a board tells nobody what changes)
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("first_token_s", "factor"),
    [
        (1.19, pytest.approx(0.06 / 0.021)),
        (1.12, pytest.approx(LEAST)),
        (1.1, pytest.approx(LEAST)),
    ],
)
def test_a_transfer_takes_what_the_answering_engine_does_not(board, first_token_s, factor) -> None:
    """Its own queue and step are in its forecast, and would be counted twice."""
    made = leg(board)
    made.answer_s = 0.03
    made.finish(1.1, PARAMS, 100)
    made.record_fetched(first_token_s)
    assert made.target.transfers.factor == factor


async def test_a_hang_up_on_who_answers_frees_both(board) -> None:
    made = leg(board)
    made.finish(1.1, PARAMS, 100)
    made.handed = True
    assert made.close(failed=False) is False
    assert held(board) == {}


async def test_freed_early_it_is_released_once(board) -> None:
    made = leg(board)
    made.finish(1.1, PARAMS, 100)
    assert made.close(failed=True) is True
    made.release()
    made.release()
    assert held(board) == {}
