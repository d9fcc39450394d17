"""A 429 holds off one model of a provider: never another one, at no worker, however it is asked."""

from pathlib import Path

import pytest

from backends.errors import UpstreamOverloaded
from backends.ratelimit import Allowance, RateLimitHeaders
from gateway.clock import Clock
from gateway.fleet.circuit_breaker import BACK_OFF_LIMIT_S, BACK_OFF_S, CIRCUIT_FAILURES
from gateway.fleet.model_backoff import (
    ModelBackoff,
    held_off_s,
    number_of,
    stated_delay_s,
    with_held_off,
)
from gateway.fleet.shared_load import SharedLoadTable
from gateway.table_layout import HELD_OFF, TableLayout
from router.types import ApiState

NAMED, SHARED, OTHERS = 0, 1, 3
APIS = ("x/m", "x/*", "y/m", "y/*")


class Time:
    def __init__(self) -> None:
        self.now_s = 1000.0


@pytest.fixture
def board(tmp_path: Path):
    board = SharedLoadTable(
        tmp_path / "board", TableLayout(workers=2, engines=("pool:a/0",), apis=APIS)
    )
    yield board
    board.close()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def held_off(board: SharedLoadTable, time: Time) -> ModelBackoff:
    return ModelBackoff(board, 0, Clock(now_s=lambda: time.now_s))


def limited(
    retry_after_s: float | None = None, limit: RateLimitHeaders | None = None
) -> UpstreamOverloaded:
    return UpstreamOverloaded("429", status=429, retry_after_s=retry_after_s, rate_limit=limit)


def test_one_model_is_held_off_for_every_worker_and_no_other(board, time, held_off) -> None:
    held_off.record_refusal(SHARED, "busy", limited(3.0))
    assert held_off_s(board, SHARED, "busy", time.now_s) == 3.0
    assert held_off_s(board, SHARED, "idle", time.now_s) == 0.0
    assert held_off_s(board, OTHERS, "busy", time.now_s) == 0.0
    time.now_s += 3.1
    assert held_off_s(board, SHARED, "busy", time.now_s) == 0.0


def test_the_latest_word_of_any_worker_counts(board, time, held_off) -> None:
    other = ModelBackoff(board, 1, Clock(now_s=lambda: time.now_s))
    held_off.record_refusal(SHARED, "busy", limited(3.0))
    other.record_refusal(SHARED, "busy", limited(8.0))
    held_off.record_refusal(SHARED, "busy", limited(1.0))
    assert held_off_s(board, SHARED, "busy", time.now_s) == 8.0


def test_without_a_word_of_when_five_in_a_row_are_a_circuit(board, time, held_off) -> None:
    for _ in range(CIRCUIT_FAILURES - 1):
        held_off.record_refusal(SHARED, "busy", limited())
    assert held_off_s(board, SHARED, "busy", time.now_s) == 0.0
    for _ in range(20):  # the first opens it; the others were on their way
        held_off.record_refusal(SHARED, "busy", limited())
    assert held_off_s(board, SHARED, "busy", time.now_s) == BACK_OFF_S
    time.now_s += BACK_OFF_S
    held_off.record_refusal(SHARED, "busy", limited())
    assert held_off_s(board, SHARED, "busy", time.now_s) == 2 * BACK_OFF_S
    time.now_s += 2 * BACK_OFF_S
    held_off.record_answer(SHARED, "busy")
    held_off.record_refusal(SHARED, "busy", limited())
    assert held_off_s(board, SHARED, "busy", time.now_s) == 0.0


def test_an_answer_of_another_model_forgives_nothing(board, time, held_off) -> None:
    for _ in range(CIRCUIT_FAILURES):
        held_off.record_refusal(SHARED, "busy", limited())
        held_off.record_answer(SHARED, "idle")
    assert held_off_s(board, SHARED, "busy", time.now_s) == BACK_OFF_S


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (limited(7.0), 7.0),
        (limited(), 0.0),
        (limited(None, RateLimitHeaders(Allowance(500, 0, 4.0), Allowance(1000, 900, 9.0))), 4.0),
        (limited(None, RateLimitHeaders(Allowance(500, 0, 4.0), Allowance(1000, 0, 9.0))), 9.0),
        (limited(None, RateLimitHeaders(Allowance(500, 3, 4.0), Allowance())), 0.0),
        (limited(2.0, RateLimitHeaders(Allowance(500, 0, 40.0), Allowance())), 2.0),
        (limited(None, RateLimitHeaders(Allowance(500, 0, None), Allowance())), 0.0),
    ],
)
def test_how_long_is_what_was_said(error: UpstreamOverloaded, seconds: float) -> None:
    assert stated_delay_s(error) == seconds


def test_nobody_is_held_off_for_longer_than_a_circuit(board, time, held_off) -> None:
    held_off.record_refusal(SHARED, "busy", limited(3600.0))
    assert held_off_s(board, SHARED, "busy", time.now_s) == BACK_OFF_LIMIT_S


def test_of_more_models_than_places_the_first_that_is_over_makes_room(
    board, time, held_off
) -> None:
    for number in range(HELD_OFF):
        held_off.record_refusal(SHARED, f"m{number}", limited(10.0 + number))
    held_off.record_refusal(SHARED, "one more", limited(5.0))
    known = [held_off_s(board, SHARED, f"m{number}", time.now_s) for number in range(HELD_OFF)]
    assert known == [0.0, *(10.0 + number for number in range(1, HELD_OFF))]
    assert held_off_s(board, SHARED, "one more", time.now_s) == 5.0


def test_places_are_nobody_elses_cells(board, time, held_off) -> None:
    """Filled to the last, of the last provider, nothing beside them changes."""
    own = {board.held_row(0, row) + cell for row in (SHARED, OTHERS) for cell in range(48)}
    before = board.cells.tolist()
    for number in range(HELD_OFF):
        held_off.record_refusal(SHARED, f"m{number}", limited(9.0))
        held_off.record_refusal(OTHERS, f"m{number}", limited(9.0))
    after = board.cells.tolist()
    changed = {cell for cell in range(len(after)) if after[cell] != before[cell]}
    assert changed == own
    assert max(own) < board.layout.worker_cells + 2
    board.clear(0)
    assert held_off_s(board, SHARED, "m0", time.now_s) == 0.0


def test_a_name_is_a_number_that_a_cell_holds() -> None:
    numbers = {number_of(f"m{number}") for number in range(1000)}
    assert len(numbers) == 1000
    assert all(0.0 < number < 2.0**53 for number in numbers)


def test_a_model_that_is_held_off_has_nothing_left_until_then() -> None:
    state = with_held_off(ApiState(retry_after_s=1.0), 4.0)
    assert (state.requests_left, state.retry_after_s, state.ready) == (0, 4.0, False)
    assert with_held_off(ApiState(retry_after_s=9.0), 4.0).retry_after_s == 9.0


# ---------------------------------------------------------------- in a running host


@pytest.mark.parametrize("retry_after_s", [30, None])
def test_what_one_model_may_not_another_may(stack, retry_after_s) -> None:
    """Neither a wish for silence nor any number of refusals reaches the provider's other models."""
    stack.forgive("alpha")
    times = 1 if retry_after_s else CIRCUIT_FAILURES
    stack.fault("alpha", fault="status", status=429, retry_after_s=retry_after_s, times=times)
    name = f"alpha/busy-{retry_after_s}"
    refused = [stack.chat(name, max_tokens=5).status_code for _ in range(times)]
    assert refused == [503] * times
    other = stack.chat("alpha/another", max_tokens=5)
    assert other.status_code == 200, other.text
    asked = len(stack.entries("alpha"))
    still = stack.chat(name, max_tokens=5)
    assert still.status_code == 429, still.text
    assert 1 <= int(still.headers["retry-after"]) <= 30
    assert len(stack.entries("alpha")) == asked, "nobody was asked"
    stack.forgive("alpha")


def test_the_host_itself_is_everybodys(stack) -> None:
    """The other side: what fails whatever is asked is found out once."""
    stack.forgive("alpha")
    stack.fault("alpha", fault="status", status=503, times=CIRCUIT_FAILURES)
    for number in range(CIRCUIT_FAILURES):
        stack.chat(f"alpha/m{number}", max_tokens=5)
    assert stack.chat("alpha/never-asked", max_tokens=5).status_code == 503
    stack.forgive("alpha")
