"""What a worker learns of an API: latencies, failures in a row, silence that was asked for."""

import logging
import math
from array import array
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.ratelimit import Allowance, RateLimitHeaders
from gateway.clock import Clock
from gateway.fleet.circuit_breaker import CIRCUIT_FAILURES
from gateway.fleet.shared_load import SharedLoadTable
from gateway.fleet.target_stats import FULL, RESET_LIMIT_S, RESET_S, TargetStats
from gateway.fleet.target_views import LiveApiView
from gateway.table_layout import API_CELLS, ApiStatsCell, LoadCell, TableLayout
from router.estimator_rules import ESTIMATORS, LATENCY_HALF_LIFE_S, Estimator
from router.types import ApiState

RULE = ESTIMATORS[Estimator.API_LATENCY]


class Time:
    def __init__(self) -> None:
        self.now_s = 1000.0


@pytest.fixture
def board(tmp_path: Path):
    board = SharedLoadTable(
        tmp_path / "board", TableLayout(workers=2, engines=(), apis=("x/m", "x/*"))
    )
    yield board
    board.close()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def experience(board: SharedLoadTable, time: Time) -> TargetStats:
    return TargetStats(board, 0, Clock(now_s=lambda: time.now_s))


def state(board: SharedLoadTable, time: Time):
    return LiveApiView(board, 0).snapshot(time.now_s, 0)


def test_a_circuit_that_opens_and_closes_is_one_line_each(experience, time, caplog) -> None:
    caplog.set_level(logging.INFO, logger="breakeven.targets")
    for _ in range(CIRCUIT_FAILURES + 3):
        experience.api(1, ttft_s=None, tpot_s=None, ok=False)
        time.now_s += 1000.0
    for _ in range(2):
        experience.api(1, ttft_s=0.1, tpot_s=None, ok=True)
    assert [record.getMessage() for record in caplog.records] == [
        f"circuit opened target=x/* failures={CIRCUIT_FAILURES}", "circuit closed target=x/*",
    ]  # fmt: skip


def test_experience_is_weighted_by_observations(board: SharedLoadTable, time: Time) -> None:
    for worker, (count, mean) in enumerate(((1.0, 2.0), (3.0, 6.0))):
        row = board.api_stats_row(worker, 0)
        board.cells[row + ApiStatsCell.OBSERVATIONS] = count
        board.cells[row + ApiStatsCell.LN_TTFT_MEAN] = mean
        board.cells[row + ApiStatsCell.RETRY_AT_S] = time.now_s + 1.0 + worker
    known = state(board, time)
    assert known.observations == 4
    assert known.ttft_median_ms == pytest.approx(1000 * math.exp(5.0))
    assert known.retry_after_s == 2.0


def test_nothing_seen_is_nothing_known(board: SharedLoadTable, time: Time) -> None:
    unknown = state(board, time)
    assert unknown.ttft_median_ms is None
    assert unknown.requests_left is None
    assert not unknown.circuit_open


def test_medians_follow_what_was_seen(
    board: SharedLoadTable, time: Time, experience: TargetStats
) -> None:
    for _ in range(50):
        experience.api(0, ttft_s=0.2, tpot_s=0.01, ok=True)
        experience.api(0, ttft_s=0.8, tpot_s=0.01, ok=True)
    learned = state(board, time)
    assert learned.ttft_median_ms == pytest.approx(400, rel=0.15)
    assert learned.ttft_sigma == pytest.approx(math.log(2), rel=0.2)
    assert learned.tpot_median_ms == pytest.approx(10)
    assert learned.tpot_sigma == pytest.approx(0, abs=1e-6)


def test_failures_in_a_row_open_the_circuit_and_one_success_closes_it(
    board: SharedLoadTable, time: Time, experience: TargetStats
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


@given(st.lists(st.floats(1e-4, 1e5), min_size=1, max_size=60))
def test_one_observation_moves_a_median_by_at_most_the_stated_factor(seen) -> None:
    cells = array("d", bytes(8 * API_CELLS))
    board = SimpleNamespace(cells=cells, api_stats_row=lambda _worker, _api: 0)
    experience = TargetStats(board, 0, Clock(now_s=lambda: 0.0))
    experience.api(0, ttft_s=seen[0], tpot_s=None, ok=True)
    for ttft_s in seen:
        before = cells[ApiStatsCell.LN_TTFT_MEAN]
        experience.api(0, ttft_s=ttft_s, tpot_s=ttft_s, ok=True)
        moved = math.exp(abs(cells[ApiStatsCell.LN_TTFT_MEAN] - before))
        assert moved <= RULE.step * (1 + 1e-9)


@pytest.mark.parametrize("odd_s", [60.0, 600.0, 1e-4])
def test_usual_answers_bring_a_median_back(board, time, experience, odd_s) -> None:
    for _ in range(500):
        experience.api(0, ttft_s=odd_s, tpot_s=None, ok=True)
    for _ in range(RULE.returns):
        experience.api(0, ttft_s=0.2, tpot_s=None, ok=True)
    assert state(board, time).ttft_median_ms == pytest.approx(200, rel=0.05)


def test_a_first_pace_is_taken_as_it_is(board, time, experience) -> None:
    """Answers in one piece, which have none, came before it."""
    for _ in range(30):
        experience.api(0, ttft_s=0.2, tpot_s=None, ok=True)
    experience.api(0, ttft_s=0.2, tpot_s=0.02, ok=True)
    assert state(board, time).tpot_median_ms == pytest.approx(20)


@pytest.mark.parametrize("suspect", [False, True])
def test_each_worker_counts_its_own_failures_and_opens_the_circuit_for_all(
    board: SharedLoadTable, time: Time, suspect: bool
) -> None:
    workers = [TargetStats(board, worker, Clock(now_s=lambda: time.now_s)) for worker in (0, 1)]

    def fail(worker: TargetStats, number: int) -> None:
        key = f"key-{number}" if suspect else None
        worker.api(0, ttft_s=None, tpot_s=None, ok=False, suspect=key)

    for number in range(CIRCUIT_FAILURES - 1):
        for worker in workers:
            fail(worker, number)
            if suspect:
                fail(worker, number)  # the same key again is not counted again
    assert not state(board, time).circuit_open
    fail(workers[1], CIRCUIT_FAILURES)
    assert state(board, time).circuit_open


def test_a_wish_for_silence_is_heard_by_every_worker(
    board: SharedLoadTable, time: Time, experience: TargetStats
) -> None:
    experience.record_retry_after(0, 3.0)
    assert state(board, time).circuit_open
    time.now_s += 3.1
    assert not state(board, time).circuit_open


def test_a_shorter_wish_does_not_end_a_longer_silence(
    board: SharedLoadTable, time: Time, experience: TargetStats
) -> None:
    """Who was on the way meanwhile may hear of another one."""
    experience.record_retry_after(0, 30.0)
    experience.record_retry_after(0, 1.0)
    time.now_s += 29.9
    assert state(board, time).circuit_open
    time.now_s += 0.2
    assert not state(board, time).circuit_open


def said(left=None, reset_s=None, *, limit=None, tokens=None) -> RateLimitHeaders:
    return RateLimitHeaders(
        Allowance(limit, left, reset_s), Allowance(left=tokens, reset_s=reset_s)
    )


def test_a_limit_not_said_is_no_limit(
    board: SharedLoadTable, time: Time, experience: TargetStats
) -> None:
    """A cleared row is all zeros, also once something else was seen."""
    experience.api(0, ttft_s=0.1, tpot_s=None, ok=True)
    experience.record_rate_limit(0, RateLimitHeaders())
    learned = state(board, time)
    assert (learned.requests_left, learned.tokens_left) == (None, None)
    experience.record_rate_limit(0, said(7))
    board.clear(0)
    assert state(board, time).requests_left is None


def test_a_spent_limit_is_void_when_it_starts_over(
    board: SharedLoadTable, time: Time, experience: TargetStats
) -> None:
    experience.record_rate_limit(0, said(0, 6.0, tokens=500))
    spent = state(board, time)
    assert (spent.requests_left, spent.tokens_left, spent.retry_after_s) == (0, 500, 6.0)
    time.now_s += 5.9
    assert state(board, time).requests_left == 0
    time.now_s += 0.2
    over = state(board, time)
    assert (over.requests_left, over.tokens_left, over.retry_after_s) == (None, None, 0.0)


@pytest.mark.parametrize(("reset_s", "void_s"), [(None, RESET_S), (86_400.0, RESET_LIMIT_S)])
def test_a_reset_that_is_missing_or_far_away_is_not_waited_for(
    board: SharedLoadTable, time: Time, experience: TargetStats, reset_s, void_s
) -> None:
    experience.record_rate_limit(0, said(0, reset_s))
    time.now_s += void_s - 0.1
    assert state(board, time).requests_left == 0
    time.now_s += 0.2
    assert state(board, time).requests_left is None


def test_a_limit_that_refills_evenly_comes_back_bit_by_bit(
    board: SharedLoadTable, time: Time, experience: TargetStats
) -> None:
    experience.record_rate_limit(0, said(0, 60.0, limit=120))
    assert state(board, time).retry_after_s == pytest.approx(0.5)
    time.now_s += 10
    assert state(board, time).requests_left == 20
    experience.record_rate_limit(
        0, said(21, 49.5, limit=120)
    )  # more than came back: an older answer's
    assert state(board, time).requests_left == 20
    experience.record_rate_limit(0, said(3, 58.5, limit=120))
    assert state(board, time).requests_left == 3


def test_what_is_unanswered_counts_against_what_is_left(
    board: SharedLoadTable, time: Time, experience: TargetStats
) -> None:
    experience.record_rate_limit(0, said(3, 30.0, tokens=1000))
    passages = [experience.begin_call(0, 400) for _ in range(2)]
    out = LiveApiView(board, 0).snapshot(time.now_s, 400)
    assert (out.requests_left, out.tokens_left, out.retry_after_s) == (1, 200, 30.0)
    assert LiveApiView(board, 0).snapshot(time.now_s, 200).retry_after_s == 0.0
    passages += [experience.begin_call(0, 400) for _ in range(2)]
    assert (state(board, time).requests_left, state(board, time).tokens_left) == (0, 0)
    for passage in passages * 2:  # landing twice is landing once
        passage.release()
    assert (state(board, time).requests_left, state(board, time).tokens_left) == (3, 1000)


def test_workers_agree_on_the_least(
    board: SharedLoadTable, time: Time, experience: TargetStats
) -> None:
    other = TargetStats(board, 1, Clock(now_s=lambda: time.now_s))
    experience.record_rate_limit(0, said(9, 30.0))
    other.record_rate_limit(0, said(4, 20.0))
    experience.begin_call(0, 10)
    other.begin_call(0, 10)
    assert state(board, time).requests_left == 2
    time.now_s += 21
    assert state(board, time).requests_left == 7, "the other's word is void, what is out is not"


def test_models_that_share_a_row_share_no_limit(
    board: SharedLoadTable, time: Time, experience: TargetStats
) -> None:
    experience.record_rate_limit(1, said(0, 30.0))
    assert LiveApiView(board, 1).snapshot(time.now_s, 0).requests_left is None


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["said", "depart", "land", "pass"]),
            st.integers(0, 1),
            st.integers(0, 50),
            st.floats(0, 200),
        ),
        max_size=40,
    )
)
def test_room_is_never_negative_and_always_comes_back(tmp_path_factory, steps) -> None:
    time, out = Time(), []
    path = tmp_path_factory.mktemp("board") / "board"
    board = SharedLoadTable(path, TableLayout(workers=2, engines=(), apis=("x/m",)))
    workers = [TargetStats(board, n, Clock(now_s=lambda: time.now_s)) for n in range(2)]
    for what, worker, number, seconds in steps:
        if what == "said":
            workers[worker].record_rate_limit(
                0, said(number, seconds, limit=50, tokens=number * 100)
            )
        elif what == "depart":
            out.append(workers[worker].begin_call(0, number * 10))
        elif what == "land" and out:
            out.pop(number % len(out)).release()
        elif what == "pass":
            time.now_s += seconds
        now = LiveApiView(board, 0).snapshot(time.now_s, 1)
        assert min(now.requests_left or 0, now.tokens_left or 0) >= 0
        assert 0.0 <= now.retry_after_s <= RESET_LIMIT_S
        if now.requests_left == 0 or now.tokens_left == 0:
            later = LiveApiView(board, 0).snapshot(time.now_s + RESET_LIMIT_S, 1)
            assert (later.requests_left, later.tokens_left) == (None, None)
    board.close()


def test_one_key_closes_an_api_for_nobody_and_several_do(
    board: SharedLoadTable, time: Time, experience: TargetStats
) -> None:
    for _ in range(30):
        experience.api(0, ttft_s=None, tpot_s=None, ok=False, suspect="loud")
    assert not state(board, time).circuit_open
    for number in range(CIRCUIT_FAILURES - 2):
        experience.api(0, ttft_s=None, tpot_s=None, ok=False, suspect=f"other-{number}")
        assert not state(board, time).circuit_open
    experience.api(0, ttft_s=None, tpot_s=None, ok=False, suspect="last")
    assert state(board, time).circuit_open
    first_s = state(board, time).retry_after_s
    time.now_s += first_s
    experience.api(0, ttft_s=None, tpot_s=None, ok=False, suspect="last")
    assert state(board, time).retry_after_s == 2 * first_s


def test_a_success_forgives_every_key(
    board: SharedLoadTable, time: Time, experience: TargetStats
) -> None:
    for _ in range(3):
        for number in range(CIRCUIT_FAILURES - 1):
            experience.api(0, ttft_s=None, tpot_s=None, ok=False, suspect=f"key-{number}")
        experience.api(0, ttft_s=0.1, tpot_s=None, ok=True)
    assert not state(board, time).circuit_open
    assert board.cells[board.api_stats_row(0, 0) + ApiStatsCell.FAILURES_IN_A_ROW] == 0.0


IDLE = [0.0] * len(LoadCell)


def test_a_key_whose_failures_its_like_answers_is_no_suspect(
    board: SharedLoadTable, experience: TargetStats
) -> None:
    """A replica that fails what another one answers is at fault, were all of it one key's."""
    for _ in range(CIRCUIT_FAILURES):
        assert not experience.engines.is_shunned(0, IDLE, 1000.0)
        experience.engine(0, ok=False, suspect="one")
        experience.discount_failures(0, "one")
    assert experience.engines.is_shunned(0, IDLE, 1000.0)
    experience.discount_failures(1, "nobody")


def test_one_key_shuns_an_engine_for_nobody_and_several_do(
    board: SharedLoadTable, experience: TargetStats
) -> None:
    for _ in range(20):
        experience.engine(0, ok=False, suspect="one")
    assert not experience.engines.is_shunned(0, IDLE, 1000.0)
    for number in range(CIRCUIT_FAILURES - 1):
        experience.engine(0, ok=False, suspect=f"other-{number}")
    assert experience.engines.is_shunned(0, IDLE, 1000.0)
    experience.engine(0, ok=True)
    assert not experience.engines.is_shunned(0, IDLE, 1000.0)


def test_latencies_fade_in_a_silence_and_are_unknown_in_the_end(
    board: SharedLoadTable, experience: TargetStats, time: Time
) -> None:
    """Red before: what an API took a month ago weighed as much as what it took a minute ago."""
    for _ in range(round(2 * FULL)):
        experience.api(0, ttft_s=3.0, tpot_s=0.02, ok=True)
    before = state(board, time)
    experience.age(60.0)
    after = state(board, time)
    assert after.ttft_median_ms == before.ttft_median_ms
    assert after.observations == pytest.approx(FULL, rel=0.01)
    half_life_s = ESTIMATORS[Estimator.API_LATENCY].half_life_s  # as the guide tells it
    experience.age(5 * half_life_s)
    assert state(board, time).observations == pytest.approx(FULL / 32, rel=0.05)
    experience.age(6 * half_life_s)
    faded = state(board, time)
    assert (faded.observations, faded.ttft_median_ms, faded.tpot_median_ms) == (0, None, None)


def test_a_silence_takes_each_latency_back_to_its_own_prior(board, time, experience) -> None:
    """Red before: a pace faded to the first token's prior."""
    for _ in range(400):
        experience.api(0, ttft_s=0.5, tpot_s=0.02, ok=True)
    experience.age(6 * LATENCY_HALF_LIFE_S)
    known = state(board, time)
    assert known.observations >= 1
    prior = ApiState()
    assert known.ttft_sigma == pytest.approx(prior.ttft_sigma, rel=0.02)
    assert known.tpot_sigma == pytest.approx(prior.tpot_sigma, rel=0.02)


def test_latencies_of_one_target_are_forgotten_and_its_failures_are_not(
    board: SharedLoadTable, experience: TargetStats, time: Time
) -> None:
    for row in range(2):
        experience.api(row, ttft_s=3.0, tpot_s=0.02, ok=True)
        experience.record_retry_after(row, 5.0)
    key = Estimator.API_LATENCY
    assert experience.statistics() == {
        (key, "keys"): 2.0, (key, "least"): pytest.approx(3.0), (key, "most"): pytest.approx(3.0),
    }  # fmt: skip
    experience.forget("x/m")
    assert experience.statistics()[key, "keys"] == 1.0
    assert state(board, time).circuit_open
    experience.forget(None)
    assert experience.statistics() == {(key, "keys"): 0.0}


def test_a_latency_of_one_second_is_no_unknown_one(
    board: SharedLoadTable, experience: TargetStats, time: Time
) -> None:
    """Red before: its logarithm is 0, and the next answer, however odd, replaced all before it."""
    for _ in range(30):
        experience.api(0, ttft_s=1.0, tpot_s=1.0, ok=True)
    experience.api(0, ttft_s=900.0, tpot_s=900.0, ok=True)
    known = state(board, time)
    assert known.ttft_median_ms < 1000 * RULE.step
    assert known.tpot_median_ms < 1000 * RULE.step
