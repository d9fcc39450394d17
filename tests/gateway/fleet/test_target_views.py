"""What is seen of a target is what the board says now, however it was remembered."""

from contextlib import closing
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published_cells import NOW_S, PUBLISHED

from gateway.clock import Clock
from gateway.fleet.peers.peer_load import PeerEngineLoad
from gateway.fleet.peers.row import PeerLoadRow
from gateway.fleet.shared_load import SharedLoadTable
from gateway.fleet.target_stats import TargetStats
from gateway.fleet.target_views import (
    FRESH_S,
    UNREADABLE,
    LiveApiView,
    LiveEngineView,
    engine_state,
)
from gateway.request.load_tracker import LoadReservation, ReservedLoad
from gateway.table_layout import (
    HEALTHS,
    ApiStatsCell,
    EngineCell,
    LoadCell,
    SupervisionCell,
    TableLayout,
)
from router.types import TargetHealth


@pytest.fixture(params=[1, 2])
def board(tmp_path: Path, request):
    layout = TableLayout(
        workers=request.param, engines=("pool:a/0", "pool:a/1"), apis=("x/m", "x/n")
    )
    board = SharedLoadTable(tmp_path / "board", layout)
    board.publish(0, PUBLISHED)
    yield board
    board.close()


def state(board: SharedLoadTable, now_s: float = NOW_S):
    return engine_state(board.published(0), board.loads(0), now_s, 10.0, life=board.life(0))


def test_own_events_and_foreign_load_add_up(board: SharedLoadTable) -> None:
    for worker, sequences in ((0, 2.0), (board.layout.workers - 1, 1.0)):
        row = board.load_row(worker, 0)
        board.cells[row + LoadCell.SEQUENCES] += sequences
        board.cells[row + LoadCell.CONTEXT_TOKENS] += 300.0 * sequences
        board.cells[row + LoadCell.QUEUED_PREFILL_TOKENS] += 50.0
        board.cells[row + LoadCell.PROMISED_TOKENS] += 512.0 * sequences
    board.publish(0, {EngineCell.FOREIGN_SEQUENCES: 4.0, EngineCell.FOREIGN_KV_TOKENS: 640.0})
    engine = state(board)
    assert engine.health is TargetHealth.HEALTHY
    assert engine.running == 7
    assert engine.context_tokens == 900 + 640
    assert engine.queued_prefill_tokens == 100
    assert engine.kv_used_tokens + engine.kv_promised_tokens == 3 * 512 + 640


def test_what_queued_prompts_have_in_the_prefix_cache_is_held_and_not_queued(
    board: SharedLoadTable,
) -> None:
    before = state(board)
    LoadReservation(board, 0, 0, ReservedLoad(5000, 5056, 1, hit_tokens=4800))
    seen = state(board)
    assert seen.queued_prefill_tokens - before.queued_prefill_tokens == 200
    assert seen.queued_hit_tokens - before.queued_hit_tokens == 4800
    assert seen.kv_used_tokens - before.kv_used_tokens == 5000
    assert seen.kv_taken_tokens - before.kv_taken_tokens == 5056


def test_at_the_head_of_the_queue_a_long_prompt_is_the_likelier(board: SharedLoadTable) -> None:
    assert state(board).head_tokens == 0.0
    for worker, tokens in ((0, 300), (board.layout.workers - 1, 100)):
        LoadReservation(board, worker, 0, ReservedLoad(tokens, 512, 1, sent_s=NOW_S - 1.0))
    seen = state(board)
    assert seen.head_tokens == (300**2 + 100**2) / 400
    assert seen.head_since_s == 1.0


def test_the_tightest_promises_of_its_classes_are_the_engines(board: SharedLoadTable) -> None:
    assert (state(board).tightest_ttft_ms, state(board).tightest_tpot_ms) == (None, None)
    board.publish(0, {EngineCell.TIGHTEST_TTFT_MS: 200.0})
    board.cells[board.load_row(0, 0) + LoadCell.TIGHTEST_TPOT_MS] = 30.0
    assert (state(board).tightest_ttft_ms, state(board).tightest_tpot_ms) == (200.0, 30.0)


def test_misses_to_spare_are_as_telemetry_says(board: SharedLoadTable) -> None:
    assert (state(board).spare_misses, state(board).spare_brief_misses) == (0.0, 0.0)
    board.publish(0, {EngineCell.SPARE_MISSES: 1.5, EngineCell.SPARE_BRIEF_MISSES: -0.5})
    assert (state(board).spare_misses, state(board).spare_brief_misses) == (1.5, -0.5)


def test_metrics_of_another_life_than_serves_are_the_past(board: SharedLoadTable) -> None:
    """As soon as the parent says so, and until telemetry has met the next one."""
    board.publish_stage(0, "serving", life=1)
    assert state(board).health is TargetHealth.LOADING
    board.publish(0, {**PUBLISHED, EngineCell.LIFE: 1.0})
    assert state(board).health is TargetHealth.HEALTHY
    board.publish_stage(0, "backing_off")
    assert state(board).health is TargetHealth.LOADING
    board.publish_stage(0, "serving", life=2)
    assert state(board).health is TargetHealth.LOADING
    board.publish(0, {EngineCell.HEALTH: float(HEALTHS.index("down"))})
    assert state(board).health is TargetHealth.DOWN


def test_stale_or_missing_metrics_are_unknown(board: SharedLoadTable) -> None:
    assert state(board, NOW_S + 8.9).health is TargetHealth.HEALTHY
    assert state(board, NOW_S + 9.1).health is TargetHealth.UNKNOWN
    board.publish(0, {EngineCell.UPDATED_S: 0.0})
    assert state(board).health is TargetHealth.UNKNOWN


NONSENSE = [
    {EngineCell.UPDATED_S: value} for value in (nan, inf, 1e300, NOW_S + 5.0)
] + [
    {cell: -1.0} for cell in (EngineCell.B_S, EngineCell.C_S, EngineCell.D_S, EngineCell.T0_S)
] + [
    {EngineCell.B_S: nan}, {EngineCell.SAFETY_TTFT: inf}, {EngineCell.SAFETY_TPOT: inf},
    {EngineCell.FOREIGN_KV_TOKENS: nan}, {EngineCell.FOREIGN_SEQUENCES: -9.0},
    {EngineCell.CONTEXT_TOKENS: inf},
]  # fmt: skip


@pytest.mark.parametrize("broken", NONSENSE)
def test_what_no_engine_can_say_is_no_headroom(board: SharedLoadTable, broken) -> None:
    """Whether by its age or by its numbers: nothing is predicted from it."""
    sight = LiveEngineView(board, 0, 10.0, None)
    assert sight.snapshot(NOW_S)[0].ready
    board.publish(0, broken)
    seen, _, _ = sight.snapshot(NOW_S)
    assert seen is UNREADABLE or seen.health is TargetHealth.UNKNOWN


def test_metrics_a_little_newer_than_the_request_are_news(board: SharedLoadTable) -> None:
    board.publish(0, {EngineCell.UPDATED_S: NOW_S + 0.5})
    assert state(board).health is TargetHealth.HEALTHY


@pytest.mark.parametrize("word", [-1.0, 99.0, nan, inf])
def test_a_health_that_is_none_is_an_engine_nobody_sees(
    board: SharedLoadTable, word: float
) -> None:
    board.publish(0, {EngineCell.HEALTH: word})
    seen, context_tokens, _ = LiveEngineView(board, 0, 10.0, None).snapshot(NOW_S)
    assert seen is UNREADABLE
    assert context_tokens == 0


def test_promises_that_are_no_number_are_no_room(board: SharedLoadTable) -> None:
    board.cells[board.load_row(0, 0) + LoadCell.PROMISED_TOKENS] = nan
    assert not state(board).sane


def test_an_engine_without_a_fit_has_no_step_model(board: SharedLoadTable) -> None:
    board.publish(0, {EngineCell.A_S: 0.0})
    assert state(board).step is None


def test_every_cell_that_changes_is_seen_at_once(board: SharedLoadTable) -> None:
    sight = LiveEngineView(board, 0, 10.0, None)
    last = board.layout.workers - 1
    rows = [(board.published_row(0), len(EngineCell)), (board.owned_row(0), len(SupervisionCell))]
    rows += [(board.load_row(worker, 0), len(LoadCell)) for worker in {0, last}]
    for row, count in rows:
        for cell in range(row, row + count):
            before = board.cells[cell]
            for number in (1.0, 3.0, before):
                board.cells[cell] = number
                known, stated, market = sight.snapshot(NOW_S)
                assert replace(known, residents=()) == state(board)
                assert stated == int(board.published(0)[EngineCell.CONTEXT_TOKENS])
                assert market.bid_price == board.published(0)[EngineCell.BID_PRICE_PUSD_PER_S]


def test_while_nothing_changes_it_is_not_made_anew_and_ages_are_nearly_right(
    board: SharedLoadTable,
) -> None:
    sight = LiveEngineView(board, 0, 10.0, None)
    first, *_ = sight.snapshot(NOW_S)
    board.cells[board.load_row(0, 1)] = 7.0  # another engine's
    assert sight.snapshot(NOW_S + 0.9 * FRESH_S)[0] is first
    later, *_ = sight.snapshot(NOW_S + 2 * FRESH_S)
    assert later.age_s == pytest.approx(first.age_s + 2 * FRESH_S)
    assert sight.snapshot(NOW_S + 9.1)[0].health is TargetHealth.UNKNOWN
    assert sight.snapshot(NOW_S)[0] == first, "a clock of tests may go back"


def test_an_engine_that_is_left_alone_is_asked_about_every_time(board: SharedLoadTable) -> None:
    alone = True
    sight = LiveEngineView(board, 0, 10.0, lambda *_: alone)
    assert sight.snapshot(NOW_S)[0].health is TargetHealth.DOWN
    alone = False
    assert sight.snapshot(NOW_S)[0].health is TargetHealth.HEALTHY


def test_an_api_is_seen_as_it_is(board: SharedLoadTable) -> None:
    """Every cell of every worker, limits that refill, silences that pass."""
    sight, last = LiveApiView(board, 0), board.layout.workers - 1
    for worker in {0, last}:
        row = board.api_stats_row(worker, 0)
        for cell in ApiStatsCell:
            for number in (1.0, NOW_S + 1.0, 0.0 if cell % 2 else 2.0):
                board.cells[row + cell] = number
                for now_s in (NOW_S, NOW_S + 0.5, NOW_S + 2.0):
                    assert sight.snapshot(now_s, 40) == LiveApiView(board, 0).snapshot(now_s, 40)


_WRITES = st.tuples(
    st.sampled_from(list(ApiStatsCell)),
    st.sampled_from((0.0, 1.0, 2.0, NOW_S - 3.0, NOW_S, NOW_S + 1.0)),
    st.floats(0.0, 20.0),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_WRITES, max_size=12))
def test_in_whatever_order_cells_change_an_api_is_seen_as_it_is(
    board: SharedLoadTable, writes
) -> None:
    """Also where only what is out changes, while an API that came back is asked by few."""
    row = board.api_stats_row(0, 0)
    for cell in ApiStatsCell:
        board.cells[row + cell] = 0.0
    sight, now_s = LiveApiView(board, 0), NOW_S
    for cell, number, passed_s in writes:
        board.cells[row + cell] = number
        now_s += passed_s
        assert sight.snapshot(now_s, 40) == LiveApiView(board, 0).snapshot(now_s, 40)


def test_an_api_that_came_back_is_looked_at_with_all_that_is_out(board: SharedLoadTable) -> None:
    sight, row = LiveApiView(board, 0), board.api_stats_row(0, 0)
    board.cells[row + ApiStatsCell.OPENED_S] = NOW_S - 9.0
    assert not sight.snapshot(NOW_S, 40).circuit_open
    board.cells[row + ApiStatsCell.REQUESTS_OUT] = 1.0
    assert sight.snapshot(NOW_S, 40).circuit_open


def test_an_api_that_says_no_limit_is_looked_at_when_something_came_of_it(
    board: SharedLoadTable,
) -> None:
    sight = LiveApiView(board, 0)
    experience = TargetStats(board, 0, Clock(now_s=lambda: NOW_S))
    experience.api(0, ttft_s=0.5, tpot_s=0.01, ok=True)
    first = sight.snapshot(NOW_S, 40)
    experience.api(1, ttft_s=0.7, tpot_s=0.01, ok=True)
    assert sight.snapshot(NOW_S + 100.0, 90) is first
    passage = experience.begin_call(0, 90)  # what is on its way matters where a limit is known
    assert sight.snapshot(NOW_S, 90) is first
    passage.release()
    assert sight.snapshot(NOW_S, 90) is first
    experience.api(0, ttft_s=0.9, tpot_s=0.01, ok=True)
    assert sight.snapshot(NOW_S, 40).ttft_median_ms > first.ttft_median_ms


def test_a_board_that_is_looked_at_can_be_closed(tmp_path: Path) -> None:
    board = SharedLoadTable(
        tmp_path / "board", TableLayout(workers=2, engines=("pool:a/0",), apis=("x/m",))
    )
    sight = LiveEngineView(board, 0, 10.0, None)
    sight.snapshot(NOW_S)
    board.close()
    with pytest.raises((TypeError, ValueError)):  # what is looked at is gone
        sight.snapshot(NOW_S)


def test_other_hosts_requests_count_and_ask_nobody_whether_it_lives(tmp_path: Path) -> None:
    """An engine left alone for failures here is asked again by us, however busy others keep it."""
    asked = []

    def shunned(_row: int, loads, _now_s: float) -> bool:
        asked.append(loads[LoadCell.SEQUENCES])
        return False

    layout = TableLayout(workers=1, engines=("pool:a/0",), apis=(), peers=True)
    with closing(SharedLoadTable(tmp_path / "shared", layout)) as board:
        board.publish(0, PUBLISHED)
        sight = LiveEngineView(board, 0, 10.0, shunned)
        board.cells[board.load_row(0, 0) + LoadCell.SEQUENCES] = 1.0
        assert sight.snapshot(NOW_S)[0].running == 1
        PeerLoadRow(board).write(0, PeerEngineLoad(4, 900, 80, 1536), NOW_S)
        seen, _, _ = sight.snapshot(NOW_S)
        assert (seen.running, seen.queued_prefill_tokens) == (5, 80)
        assert seen.kv_used_tokens + seen.kv_promised_tokens == 1536
        PeerLoadRow(board).write(0, PeerEngineLoad(4, 900, 80, 1536, 2), NOW_S)
        assert sight.snapshot(NOW_S)[0].head_tokens == 40.0  # alike, for all that is told
    assert asked == [1.0, 1.0, 1.0]
