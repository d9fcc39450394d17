"""Promises on the board: taken once, moved at the first token, given back whatever happens."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.fleet.prefix_index import PrefixIndex
from gateway.fleet.shared_load import SharedLoadTable
from gateway.request.load_tracker import PIECE_S, LoadReservation, ReservedLoad
from gateway.table_layout import EngineCell, LoadCell, TableLayout
from router.feedback import pull
from router.types import Slo, StepModel


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory):
    path: Path = tmp_path_factory.mktemp("board") / "board"
    board = SharedLoadTable(path, TableLayout(workers=1, engines=("pool:a/0",), apis=()))
    yield board
    board.close()


def flight(board: SharedLoadTable) -> LoadReservation:
    return LoadReservation(board, 0, 0, ReservedLoad(prompt_tokens=100, kv_tokens=256, sequences=2))


def test_the_prompt_moves_from_the_queue_into_the_context(board: SharedLoadTable) -> None:
    this_flight = flight(board)
    assert board.loads(0)[:4] == [2.0, 0.0, 100.0, 256.0]
    this_flight.first_token(1.0)
    this_flight.first_token(1.0)
    this_flight.add_tokens(3)
    assert board.loads(0)[:4] == [2.0, 103.0, 0.0, 256.0]
    this_flight.release()
    assert board.loads(0)[:4] == [0.0, 0.0, 0.0, 0.0]


@given(st.lists(st.sampled_from(["first", "grow", "land"]), max_size=12))
def test_landing_leaves_nothing_behind(board: SharedLoadTable, events: list[str]) -> None:
    item, other = flight(board), flight(board)
    for event in events:
        if event == "first":
            item.first_token(1.0)
        elif event == "grow":
            item.add_tokens(5)
        else:
            item.release()
    item.release()
    assert board.loads(0)[:4] == [2.0, 0.0, 100.0, 256.0]
    other.release()
    assert board.loads(0)[:4] == [0.0, 0.0, 0.0, 0.0]


def test_the_pace_is_compared_with_the_model_at_the_mean_load(board: SharedLoadTable) -> None:
    """The mean over time: of a load at both ends nothing tells what was there in between."""
    item, other, brief = flight(board), flight(board), flight(board)
    item.first_token(1.0)
    other.first_token(1.2)
    brief.first_token(1.3)
    brief.first_token(1.4)  # its last token
    brief.release()
    model = StepModel(a_s=0.01, b_s=0.001, c_s=1e-5, d_s=1e-4, t0_s=0.0)
    before = board.loads(0)
    item.record_pace(model, observed_s=0.5, steps=10)
    after = board.loads(0)
    # Of 0.5 s six sequences were there for 0.4, four for 0.1; a context of 100 for all, a second
    # for 0.3 and a third for 0.1 of them; the prompts of both others were prefilled between.
    predicted = 10 * (0.01 + 5.6 * 0.001 + 180 * 1e-5) + 200 * 1e-4
    assert after[LoadCell.OBSERVED_STEP_S_TOTAL] - before[LoadCell.OBSERVED_STEP_S_TOTAL] == 0.5
    assert after[LoadCell.PREDICTED_STEP_S_TOTAL] - before[LoadCell.PREDICTED_STEP_S_TOTAL] == (
        pytest.approx(predicted)
    )
    item.record_pace(model, observed_s=0.5, steps=0)
    assert board.loads(0)[LoadCell.OBSERVED_STEP_S_TOTAL] == after[LoadCell.OBSERVED_STEP_S_TOTAL]
    item.release()
    other.release()


def test_a_stream_that_runs_tells_its_pace_in_pieces(board: SharedLoadTable) -> None:
    """An engine that slows down is seen before its answers end, and nothing is told twice."""
    model = StepModel(a_s=0.01, b_s=0.0, c_s=0.0, d_s=0.0, t0_s=0.0)
    reservation = LoadReservation(
        board, 0, 0, ReservedLoad(100, 256, 1, output_tokens=100, step=model)
    )

    sums = slice(LoadCell.OBSERVED_STEP_S_TOTAL, LoadCell.PREDICTED_STEP_S_TOTAL + 1)
    before = board.loads(0)[sums]

    def told() -> list[float]:
        return [now - then for now, then in zip(board.loads(0)[sums], before, strict=True)]

    reservation.first_token(1.0)
    reservation.set_counts(100, 1, 1.0)
    reservation.set_counts(100, 11, 1.0 + 0.8 * PIECE_S)
    assert told() == [0.0, 0.0]
    reservation.set_counts(100, 21, 1.0 + PIECE_S)
    assert told() == pytest.approx([PIECE_S, 0.2])
    reservation.set_counts(100, 22, 1.0 + 1.5 * PIECE_S)
    assert told() == pytest.approx([PIECE_S, 0.2])
    reservation.record_pace(model, observed_s=5.0, steps=50)
    assert told() == pytest.approx([5.0, 0.5])
    reservation.release()


def test_the_queue_says_how_many_wait_and_since_when_its_head_is_read(
    board: SharedLoadTable,
) -> None:
    def queue() -> list[float]:
        loads = board.loads(0)
        return [loads[LoadCell.QUEUED_SEQUENCES], loads[LoadCell.QUEUE_MOVED_S]]

    def squares() -> float:
        return board.loads(0)[LoadCell.QUEUED_SQUARES]

    reservation = LoadReservation(board, 0, 0, ReservedLoad(100, 256, 1, sent_s=5.0))
    other = LoadReservation(board, 0, 0, ReservedLoad(200, 256, 1, sent_s=6.0))
    assert (queue(), squares()) == ([2.0, 5.0], 100.0**2 + 200.0**2)
    reservation.first_token(7.0)
    assert (queue(), squares()) == ([1.0, 7.0], 200.0**2)
    other.release()
    reservation.release()
    assert (queue()[0], squares()) == (0.0, 0.0)
    last = LoadReservation(board, 0, 0, ReservedLoad(100, 256, 1, sent_s=9.0))
    assert queue() == [1.0, 9.0]
    last.release()


def test_what_a_prefix_cache_has_of_a_queued_prompt_is_held_and_not_read(
    board: SharedLoadTable,
) -> None:
    def told() -> list[float]:
        loads = board.loads(0)
        cells = (
            LoadCell.QUEUED_PREFILL_TOKENS, LoadCell.QUEUED_HIT_TOKENS, LoadCell.QUEUED_SQUARES,
            LoadCell.CONTEXT_TOKENS,
        )  # fmt: skip
        return [loads[cell] for cell in cells]

    read = board.loads(0)[LoadCell.PREFILLED_TOKENS_TOTAL]
    promise = ReservedLoad(1000, 1056, 1, hit_tokens=900)
    warm = LoadReservation(board, 0, 0, promise)
    left = LoadReservation(board, 0, 0, promise)
    assert told() == [200.0, 1800.0, 2 * 100.0**2, 0.0]
    warm.first_token(1.0)
    assert told() == [100.0, 900.0, 100.0**2, 1000.0]
    assert board.loads(0)[LoadCell.PREFILLED_TOKENS_TOTAL] == read + 100.0
    left.release()  # before its first token
    warm.release()
    assert told() == [0.0, 0.0, 0.0, 0.0]


def test_the_end_of_an_answer_is_when_its_beginning_was_asked_for_last(
    board: SharedLoadTable,
) -> None:
    """Who ends before its first token was never held there, and moves nothing."""
    board.publish(0, {EngineCell.KV_CAPACITY_TOKENS: 64_000.0, EngineCell.FORGOTTEN_S: 1.0})
    index, marks = PrefixIndex(None, board), (11, 22, 33)
    for heard_s, known in ((None, 0), (40.0, 3)):
        index.record_sent(0, marks, 10.0)
        answered = flight(board)
        answered.prefix = index, marks
        if heard_s is not None:
            answered.first_token(heard_s)
        answered.release()
        board.publish(0, {EngineCell.FORGOTTEN_S: 20.0})
        assert index.count_known(0, marks) == known
        board.publish(0, {EngineCell.FORGOTTEN_S: 1.0})
    index.close()


JUDGED = slice(LoadCell.TTFT_PULL_TOTAL, LoadCell.MISSED_TOTAL + 1)


def judged(board: SharedLoadTable, before: list[float]) -> list[float]:
    return [now - then for now, then in zip(board.loads(0)[JUDGED], before[JUDGED], strict=True)]


def test_promises_that_come_due_are_judged(board: SharedLoadTable) -> None:
    slo = Slo(ttft_ms=500.0, tpot_ms=50.0, attainment=0.99)
    model = StepModel(a_s=0.01, b_s=0.001, c_s=1e-5, d_s=1e-4, t0_s=0.0)
    kept, missed = pull(kept=True, attainment=0.99), pull(kept=False, attainment=0.99)
    before = board.loads(0)
    reservation = LoadReservation(board, 0, 0, ReservedLoad(100, 256, 1, slo=slo))
    reservation.first_token(0.5)
    reservation.first_token(9.0)
    assert judged(board, before) == pytest.approx([kept, 0.0, 1.0, 0.0])
    reservation.record_pace(model, observed_s=0.6, steps=10)
    reservation.release()
    assert judged(board, before) == pytest.approx([kept, missed, 2.0, 1.0])


def test_a_best_effort_that_breaks_a_promise_says_nothing_of_the_margin(
    board: SharedLoadTable,
) -> None:
    slo = Slo(ttft_ms=500.0, tpot_ms=50.0, attainment=0.99)
    model = StepModel(a_s=0.01, b_s=0.001, c_s=1e-5, d_s=1e-4, t0_s=0.0)
    kept = pull(kept=True, attainment=0.99)
    found = []
    for first_s, step_s in ((0.6, 0.06), (0.4, 0.04)):  # both broken, both kept
        before = board.loads(0)
        promise = ReservedLoad(100, 256, 1, slo=slo, best_effort=True)
        reservation = LoadReservation(board, 0, 0, promise)
        reservation.first_token(first_s)
        reservation.record_pace(model, observed_s=4 * step_s, steps=4)
        reservation.release()
        brief = board.loads(0)[LoadCell.BRIEF_PULL_TOTAL] - before[LoadCell.BRIEF_PULL_TOTAL]
        found.append([*judged(board, before), brief])
    assert found[0] == [0.0] * 5
    assert found[1] == pytest.approx([kept, kept, 2.0, 0.0, kept])


@pytest.mark.parametrize(("steps", "step_s", "pulled"), [
    (1, 0.06, pull(kept=False, attainment=0.99)),
    (7, 0.06, pull(kept=False, attainment=0.99)),
    (8, 0.06, 0.0),  # a mean of so many is no single step's
    (1, 0.04, pull(kept=True, attainment=0.99)),
    (800, 0.04, pull(kept=True, attainment=0.99)),
])  # fmt: skip
def test_steps_that_break_a_brief_answer_are_summed_up(
    board: SharedLoadTable, steps: int, step_s: float, pulled: float
) -> None:
    model = StepModel(a_s=0.01, b_s=0.001, c_s=1e-5, d_s=1e-4, t0_s=0.0)
    promise = ReservedLoad(100, 256, 1, slo=Slo(tpot_ms=50.0, attainment=0.99))
    before = board.loads(0)[LoadCell.BRIEF_PULL_TOTAL]
    reservation = LoadReservation(board, 0, 0, promise)
    reservation.first_token(0.5)
    reservation.record_pace(model, observed_s=step_s * steps, steps=steps)
    reservation.release()
    assert board.loads(0)[LoadCell.BRIEF_PULL_TOTAL] - before == pytest.approx(pulled)


def test_without_a_promise_nothing_is_judged(board: SharedLoadTable) -> None:
    before = board.loads(0)
    for slo in (None, Slo()):
        reservation = LoadReservation(board, 0, 0, ReservedLoad(100, 256, 1, slo=slo))
        reservation.first_token(9.0)
        reservation.release()
    assert judged(board, before) == [0.0] * 4


def followed(board: SharedLoadTable, places: list[int], *, output: int = 200) -> LoadReservation:
    promise = ReservedLoad(
        prompt_tokens=100, kv_tokens=384, sequences=1, output_tokens=output, block_tokens=128
    )
    return LoadReservation(board, 0, 0, promise, places)


@pytest.mark.parametrize(
    ("prompt", "output"), [(0, 0), (-1, -1), (-1, 200), (5, -5), (2**63, 2**63), (10**30, 1)]
)
def test_counts_that_cannot_be_leave_nothing_behind(board: SharedLoadTable, prompt, output) -> None:
    this_followed = followed(board, [3])
    this_followed.first_token(1.0)
    this_followed.set_counts(prompt, output, 9.0)
    this_followed.set_counts(prompt, output, 9.1)
    assert board.loads(0)[LoadCell.CONTEXT_TOKENS] == 100.0
    this_followed.release()
    assert board.loads(0)[:4] == [0.0] * 4


def test_a_followed_sequence_stands_in_a_place_of_its_own(board: SharedLoadTable) -> None:
    places = [3, 7]

    def residents(now_s: float):
        return board.residents(0, now_s=now_s, limit_s=1.0)

    first_followed = followed(board, places)
    first_followed.first_token(1.0)
    assert residents(0.1) == ()  # nothing was heard of it
    first_followed.set_counts(120, 1, 8.5)
    assert residents(8.6) == ()  # nor of its pace
    first_followed.set_counts(
        120, 5, 9.0
    )  # the prompt was longer than estimated: the promise moves with it
    assert residents(9.0) == ((125.0, 320.0, 0.0),)
    assert residents(9.5) == ((125.0, 320.0, 4.0),)  # 8 tokens a second
    assert residents(10.1) == ()  # too long ago
    assert board.loads(0)[:4] == [1.0, 125.0, 0.0, 384.0]
    first_followed.set_counts(120, 201, 9.5)  # more than was promised: a block more
    assert residents(9.5) == ((321.0, 449.0, 0.0),)
    assert board.loads(0)[LoadCell.PROMISED_TOKENS] == 512.0
    other = followed(board, places)
    third = followed(board, places)  # no place is left: only the sums know it
    assert places == []
    assert board.loads(0)[LoadCell.PROMISED_TOKENS] == 512.0 + 2 * 384.0
    for each in (first_followed, other, third):
        each.release()
        each.release()
    assert residents(9.5) == ()
    assert sorted(places) == [3, 7]
    assert board.loads(0)[:4] == [0.0, 0.0, 0.0, 0.0]


def test_what_is_not_followed_takes_no_place(board: SharedLoadTable) -> None:
    places = [0]
    reservation = LoadReservation(
        board, 0, 0, ReservedLoad(prompt_tokens=100, kv_tokens=256, sequences=2), places
    )
    reservation.first_token(1.0)
    reservation.set_counts(90, 30, 1.0)
    assert (places, board.residents(0, now_s=1.0, limit_s=9.0)) == ([0], ())
    assert board.loads(0)[:4] == [2.0, 100.0, 0.0, 256.0]
    reservation.release()


def test_between_workers_the_least_counts_and_nothing_is_none(tmp_path) -> None:
    board = SharedLoadTable(
        tmp_path / "two", TableLayout(workers=3, engines=("pool:a/0",), apis=())
    )
    for worker, tpot_ms in ((0, 50.0), (2, 30.0)):
        board.cells[board.load_row(worker, 0) + LoadCell.TIGHTEST_TPOT_MS] = tpot_ms
    assert board.loads(0)[LoadCell.TIGHTEST_TPOT_MS] == 30.0
    board.clear(2)
    assert board.loads(0)[LoadCell.TIGHTEST_TPOT_MS] == 50.0
    board.close()
