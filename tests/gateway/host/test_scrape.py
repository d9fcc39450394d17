"""One engine through telemetry's eyes: foreign load, busy time, step feedback, prefill rate."""

from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from backends.metrics import EngineSample, ProbeFailed
from backends.stepmodel import FittedStepModel
from gateway.fleet.peers.peer_load import PeerEngineLoad
from gateway.fleet.peers.row import PeerLoadRow
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host import scrape
from gateway.host.scrape import TAKE_OVER_S, EngineScraper, EngineStartLimits, sums_of, turn_s
from gateway.table_layout import HEALTHS, EngineCell, LoadCell, TableLayout
from router.feedback import FEEDBACK_RANGE, SAFETY_TPOT, SAFETY_TTFT, SPARE_FIRST, FeedbackSums

SAMPLE = EngineSample(
    running=0,
    waiting=0,
    kv_usage_ratio=0.0,
    kv_capacity_tokens=1000,
    kv_block_tokens=16,
    preemptions_total=0,
    prompt_tokens_total=0,
    generation_tokens_total=0,
    prefix_query_tokens_total=0,
    prefix_hit_tokens_total=0,
    started_at_s=None,
)


@pytest.fixture
def board(tmp_path: Path):
    board = SharedLoadTable(
        tmp_path / "board", TableLayout(workers=1, engines=("pool:a/0",), apis=())
    )
    yield board
    board.close()


@pytest.fixture
def watch() -> EngineScraper:
    return EngineScraper("pool:a/0", "a", 0, EngineStartLimits(64, 2048, 4096), simulated=True)


def put(board: SharedLoadTable, cell: LoadCell, value: float) -> None:
    board.cells[board.load_row(0, 0) + cell] = value


def test_nothing_seen_is_published_as_unknown_and_without_a_time(watch, board) -> None:
    watch.publish(board)
    published = board.published(0)
    assert HEALTHS[int(published[EngineCell.HEALTH])] == "unknown"
    assert published[EngineCell.UPDATED_S] == 0.0
    assert published[EngineCell.MAX_NUM_SEQS] == 64
    row = watch.row_for(board, at_us=5, now_s=1.0)
    assert (row.health, row.running, row.age_us) == ("unknown", None, None)


def test_a_sample_tells_what_a_second_of_the_engine_was_worth(watch, board) -> None:
    watch.observe_sample(SAMPLE, board, 1.0)
    board.publish(0, {EngineCell.BID_PRICE_PUSD_PER_S: 7.6})
    assert watch.row_for(board, at_us=5, now_s=1.0).bid_price_pusd_per_s == 8
    watch.fixed_pusd_per_s = 3  # the operator's word
    assert watch.row_for(board, at_us=6, now_s=1.0).bid_price_pusd_per_s == 3


def test_foreign_load_is_the_least_excess_of_the_last_scrapes(watch, board) -> None:
    put(board, LoadCell.SEQUENCES, 2.0)
    for now_s, running in enumerate((5, 3, 9), start=1):
        watch.observe_sample(
            replace(SAMPLE, running=running, kv_usage_ratio=0.5), board, float(now_s)
        )
    watch.publish(board)
    published = board.published(0)
    assert published[EngineCell.FOREIGN_SEQUENCES] == 1.0
    # 500 tokens in use, none of them ours, but for the rounding of our two sequences' blocks
    assert published[EngineCell.FOREIGN_KV_TOKENS] == 500.0 - 2 * 16
    assert published[EngineCell.UPDATED_S] == 3.0


def test_our_own_load_is_not_foreign(watch, board) -> None:
    put(board, LoadCell.SEQUENCES, 4.0)
    watch.observe_sample(replace(SAMPLE, running=4, kv_usage_ratio=0.9), board, 1.0)
    watch.publish(board)
    published = board.published(0)
    assert published[EngineCell.FOREIGN_SEQUENCES] == 0.0
    assert published[EngineCell.FOREIGN_KV_TOKENS] == 0.0


UNTOLD = replace(
    SAMPLE, running=None, waiting=None, kv_usage_ratio=None, kv_capacity_tokens=None,
    kv_block_tokens=None, preemptions_total=None, prefix_query_tokens_total=None,
    prefix_hit_tokens_total=None, dialect="tgi",
)  # fmt: skip


def test_what_an_engine_does_not_tell_is_unknown_in_its_sample_never_0(watch, board) -> None:
    watch.observe_sample(UNTOLD, board, 1.0)
    watch.publish(board)
    row = watch.row_for(board, at_us=5, now_s=1.0)
    assert (row.running, row.waiting, row.kv_usage_ppm) == (None, None, None)
    assert (row.kv_promised_ppm, row.preemptions_total, row.prefix_hit_ppm) == (None, None, None)
    published = board.published(0)
    assert published[EngineCell.KV_CAPACITY_TOKENS] == 0.0  # the filters' word for unknown
    assert published[EngineCell.FOREIGN_SEQUENCES] == 0.0
    assert published[EngineCell.UPDATED_S] == 1.0


def test_a_capacity_that_only_the_operator_knows_is_used_where_none_is_told(board) -> None:
    watch = EngineScraper(
        "pool:a/0", "a", 0, EngineStartLimits(64, 2048, 4096, 8000), simulated=False
    )
    watch.observe_sample(UNTOLD, board, 1.0)
    watch.publish(board)
    assert board.published(0)[EngineCell.KV_CAPACITY_TOKENS] == 8000.0
    watch.observe_sample(SAMPLE, board, 2.0)
    watch.publish(board)
    assert board.published(0)[EngineCell.KV_CAPACITY_TOKENS] == 1000.0  # what it tells counts


def test_foreign_sequences_of_untold_size_hold_all_they_may(board) -> None:
    watch = EngineScraper("pool:a/0", "a", 0, EngineStartLimits(64, 2048, 0, 8000), simulated=False)
    put(board, LoadCell.SEQUENCES, 1.0)
    watch.limits.context_tokens = 3000
    for now_s in (1.0, 2.0, 3.0):
        watch.observe_sample(replace(UNTOLD, running=3), board, now_s)
    watch.publish(board)
    assert board.published(0)[EngineCell.FOREIGN_KV_TOKENS] == 2 * 3000
    watch.limits.context_tokens = 0
    watch.publish(board)
    assert board.published(0)[EngineCell.FOREIGN_KV_TOKENS] == 8000


def test_where_no_sequences_are_told_what_is_in_use_is_taken_all_the_same(watch, board) -> None:
    """A gauge that a new version calls otherwise makes no room."""
    put(board, LoadCell.SEQUENCES, 1.0)
    put(board, LoadCell.CONTEXT_TOKENS, 100.0)
    watch.observe_sample(
        replace(SAMPLE, running=None, waiting=None, kv_usage_ratio=0.9), board, 1.0
    )
    watch.publish(board)
    assert board.published(0)[EngineCell.FOREIGN_KV_TOKENS] == 900.0 - 100.0 - 16.0
    watch.observe_sample(replace(SAMPLE, running=1, kv_usage_ratio=0.9), board, 2.0)
    watch.publish(board)
    assert board.published(0)[EngineCell.FOREIGN_KV_TOKENS] == 0.0, "its one sequence is ours"


def test_who_could_not_be_measured_is_asked_again_later_and_later(watch) -> None:
    pauses = []
    for _ in range(9):
        watch.schedule_measurement(100.0)
        pauses.append(watch.meet_again_s - 100.0)
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    watch.reset(2.0)
    assert watch.meet_again_s == 0.0, "another life is met at once"


def test_counters_that_fall_tell_of_a_restart_where_no_start_is_told(watch, board) -> None:
    watch.step = FittedStepModel(1.0, 0.0, 0.0, 0.0, 0.0)
    watch.observe_sample(replace(UNTOLD, generation_tokens_total=70), board, 1.0)
    watch.observe_sample(replace(UNTOLD, generation_tokens_total=70), board, 2.0)
    assert watch.step is not None
    watch.observe_sample(replace(UNTOLD, generation_tokens_total=3), board, 3.0)
    assert watch.step is None
    assert watch.sample is not None


def test_the_round_trip_is_published_and_told_where_it_changed(watch, board) -> None:
    watch.observe_sample(SAMPLE, board, 1.0)
    watch.publish(board)
    assert board.published(0)[EngineCell.ROUND_TRIP_S] == 0.0
    assert watch.new_round_trip_us() is None
    watch.round_trip_s = 0.00042
    watch.publish(board)
    assert board.published(0)[EngineCell.ROUND_TRIP_S] == 0.00042
    told = []
    for seconds in (0.00042, 0.0008, 0.02, 0.024, 0.026, 0.0004):
        watch.round_trip_s = seconds
        told.append(watch.new_round_trip_us())
    assert told == [420, None, 20_000, None, 26_000, 400]


def test_a_failed_scrape_keeps_the_old_time(watch, board) -> None:
    watch.observe_sample(SAMPLE, board, 1.0)
    watch.publish(board)
    watch.health = "down"
    watch.publish(board)
    assert board.published(0)[EngineCell.UPDATED_S] == 1.0
    assert HEALTHS[int(board.published(0)[EngineCell.HEALTH])] == "down"


@pytest.fixture
def learned(watch, board) -> EngineScraper:
    """One that knows all there is to know of an engine."""
    watch.step, watch.health = FittedStepModel(0.01, 0.001, 1e-6, 1e-4, 0.0), "healthy"
    watch.loops.step_feedback = 2.0
    for now_s, running in ((1.0, 3), (2.0, 3), (3.0, 3)):
        watch.observe_sample(replace(SAMPLE, running=running, started_at_s=100.0), board, now_s)
    watch.limits.context_tokens = 4096
    watch.publish(board)
    return watch


FORGOTTEN = (
    EngineCell.A_S, EngineCell.B_S, EngineCell.C_S, EngineCell.D_S, EngineCell.T0_S,
    EngineCell.KV_CAPACITY_TOKENS, EngineCell.KV_BLOCK_TOKENS, EngineCell.CONTEXT_TOKENS,
    EngineCell.FOREIGN_SEQUENCES, EngineCell.UPDATED_S,
)  # fmt: skip


def test_a_life_leaves_nothing_to_the_next(learned, board) -> None:
    assert board.published(0)[EngineCell.FOREIGN_SEQUENCES] == 3.0
    learned.reset(2.0)
    learned.publish(board)
    published = board.published(0)
    assert [published[cell] for cell in FORGOTTEN] == [0.0] * len(FORGOTTEN)
    assert (published[EngineCell.LIFE], published[EngineCell.STEP_FEEDBACK]) == (2.0, 1.0)


@pytest.mark.parametrize(("started_s", "kept"), [(100.4, True), (90.0, True), (102.0, False)])
def test_an_engine_started_since_is_met_anew(learned, board, started_s, kept) -> None:
    """Of two behind one address only the later start counts: they must not alternate for ever."""
    for _ in range(2):
        learned.observe_sample(replace(SAMPLE, started_at_s=started_s), board, 4.0)
        assert (learned.step is not None) is kept
        learned.step, kept = FittedStepModel(0.01, 0.001, 1e-6, 1e-4, 0.0), True


def test_step_feedback_follows_the_ratio_within_its_range(watch, board) -> None:
    watch.step = FittedStepModel(a_s=0.01, b_s=0.001, c_s=1e-6, d_s=1e-4, t0_s=0.0)
    observed = predicted = 0.0
    for now_s in range(1, 600):
        observed, predicted = observed + 2.0, predicted + 1.0
        put(board, LoadCell.OBSERVED_STEP_S_TOTAL, observed)
        put(board, LoadCell.PREDICTED_STEP_S_TOTAL, predicted)
        watch.observe_sample(SAMPLE, board, float(now_s))
    assert watch.loops.step_feedback == pytest.approx(2.0, rel=0.01)
    put(board, LoadCell.OBSERVED_STEP_S_TOTAL, 0.0)  # a worker died: its counters went with it
    put(board, LoadCell.PREDICTED_STEP_S_TOTAL, 0.0)
    watch.observe_sample(SAMPLE, board, 700.0)
    assert watch.loops.step_feedback == pytest.approx(2.0, rel=0.01)
    for now_s in range(700, 2000):
        put(board, LoadCell.OBSERVED_STEP_S_TOTAL, 100.0 * now_s)
        put(board, LoadCell.PREDICTED_STEP_S_TOTAL, float(now_s))
        watch.observe_sample(SAMPLE, board, float(now_s))
    assert watch.loops.step_feedback == FEEDBACK_RANGE[1]
    watch.publish(board)
    assert board.published(0)[EngineCell.STEP_FEEDBACK] == FEEDBACK_RANGE[1]
    assert board.published(0)[EngineCell.A_S] == 0.01


def test_prefill_rate_is_a_running_mean(watch, board) -> None:
    for now_s in range(1, 100):
        put(board, LoadCell.PREFILLED_TOKENS_TOTAL, 300.0 * now_s)
        watch.observe_sample(SAMPLE, board, float(now_s))
    watch.publish(board)
    assert board.published(0)[EngineCell.PREFILL_RATE] == pytest.approx(300.0, rel=0.01)


def test_the_loops_factors_are_published(watch, board) -> None:
    watch.publish(board)
    published = board.published(0)
    assert (published[EngineCell.SAFETY_TTFT], published[EngineCell.SAFETY_TPOT]) == (
        SAFETY_TTFT, SAFETY_TPOT,
    )  # fmt: skip
    watch.observe_sample(SAMPLE, board, 1.0)
    put(board, LoadCell.TTFT_PULL_TOTAL, -1.0)
    put(board, LoadCell.TPOT_PULL_TOTAL, 0.5)
    put(board, LoadCell.BRIEF_PULL_TOTAL, -0.5)
    put(board, LoadCell.JUDGED_TOTAL, 2.0)
    put(board, LoadCell.MISSED_TOTAL, 1.0)
    watch.observe_sample(SAMPLE, board, 2.0)
    watch.publish(board)
    published = board.published(0)
    assert published[EngineCell.SAFETY_TTFT] == pytest.approx(SAFETY_TTFT - 0.02)
    assert published[EngineCell.SAFETY_TPOT] == pytest.approx(SAFETY_TPOT + 0.01)
    assert published[EngineCell.SPARE_MISSES] == SPARE_FIRST - 1.0
    assert published[EngineCell.SPARE_BRIEF_MISSES] == SPARE_FIRST - 0.5


def test_the_sums_are_the_cells_of_their_names(board) -> None:
    names = (
        LoadCell.OBSERVED_STEP_S_TOTAL,
        LoadCell.PREDICTED_STEP_S_TOTAL,
        LoadCell.PREFILLED_TOKENS_TOTAL,
        LoadCell.TTFT_PULL_TOTAL,
        LoadCell.TPOT_PULL_TOTAL,
        LoadCell.JUDGED_TOTAL,
        LoadCell.MISSED_TOTAL,
        LoadCell.BRIEF_PULL_TOTAL,
    )
    for value, cell in enumerate(names, start=1):
        put(board, cell, float(value))
    assert sums_of(board.loads(0)) == FeedbackSums(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)


def test_a_row_has_ratios_in_ppm_and_busy_time_once(watch, board) -> None:
    put(board, LoadCell.PROMISED_TOKENS, 250.0)
    busy = replace(
        SAMPLE, running=1, kv_usage_ratio=0.5, prefix_query_tokens_total=200,
        prefix_hit_tokens_total=50, generation_tokens_total=77,
    )  # fmt: skip
    watch.observe_sample(busy, board, 1.0)
    watch.observe_sample(busy, board, 3.0)
    row = watch.row_for(board, at_us=9, now_s=4.0)
    assert (row.kv_usage_ppm, row.kv_promised_ppm, row.prefix_hit_ppm) == (
        500_000, 250_000, 250_000,
    )  # fmt: skip
    assert (row.busy_us, row.age_us, row.output_tokens_total) == (2_000_000, 1_000_000, 77)
    assert row.simulated
    assert watch.row_for(board, at_us=10, now_s=5.0).busy_us == 0


def test_of_what_was_expected_in_the_prefix_cache_the_share_found_there_is_published(
    watch, board
) -> None:
    watch.observe_sample(SAMPLE, board, 1.0)
    put(board, LoadCell.PREFIX_EXPECTED_TOTAL, 8000.0)
    watch.observe_sample(replace(SAMPLE, prefix_hit_tokens_total=6000), board, 1.5)
    watch.publish(board)
    assert board.published(0)[EngineCell.PREFIX_TRUST] == pytest.approx(0.75)
    watch.reset(2.0)  # another process, with an empty cache
    watch.publish(board)
    assert board.published(0)[EngineCell.PREFIX_TRUST] == 0.0


STEP = FittedStepModel(a_s=0.005, b_s=1e-5, c_s=1e-8, d_s=1e-5, t0_s=0.01)


@pytest.fixture
def published(watch, board) -> EngineScraper:
    """A telemetry that met the engine, and what it learned."""
    watch.step, watch.health, watch.limits.context_tokens = STEP, "healthy", 4096
    watch.observe_sample(replace(SAMPLE, started_at_s=500.0), board, 100.0)
    watch.loops.step_feedback, watch.loops.safety_ttft = 1.7, 0.9
    watch.loops.spare_misses, watch.loops.spare_brief_misses = -1.5, -0.5
    watch.publish(board)
    return watch


def next_one() -> EngineScraper:
    return EngineScraper("pool:a/0", "a", 0, EngineStartLimits(64, 2048), simulated=True)


def test_a_telemetry_that_comes_back_goes_on(published, board) -> None:
    again = next_one()
    assert again.take_over(board, 130.0)
    again.observe_sample(replace(SAMPLE, started_at_s=500.2), board, 130.0)
    assert (again.step, again.limits.context_tokens) == (STEP, 4096)
    assert (again.loops.step_feedback, again.loops.safety_ttft) == (1.7, 0.9)
    assert (again.loops.spare_misses, again.loops.spare_brief_misses) == (-1.5, -0.5)


def test_an_engine_that_was_started_meanwhile_is_met_anew(published, board) -> None:
    again = next_one()
    assert again.take_over(board, 130.0)
    again.observe_sample(replace(SAMPLE, started_at_s=120.0 + 500.0), board, 130.0)
    assert (again.step, again.limits.context_tokens) == (None, 0)


def test_what_is_old_sick_unmet_or_of_another_life_is_not_gone_on_with(published, board) -> None:
    said = board.published(0)
    for changes, now_s in (
        ({}, 100.0 + TAKE_OVER_S + 1.0),
        ({}, 99.0),
        ({EngineCell.HEALTH: float(HEALTHS.index("down"))}, 101.0),
        ({EngineCell.A_S: 0.0}, 101.0),
        ({EngineCell.UPDATED_S: 0.0}, 101.0),
        ({EngineCell.LIFE: 3.0}, 101.0),
    ):
        board.publish(0, changes)
        assert not next_one().take_over(board, now_s), changes
        board.publish(0, {cell: said[cell] for cell in EngineCell})
    assert next_one().take_over(board, 101.0)


def test_what_other_hosts_tell_is_not_foreign_too(watch, tmp_path: Path) -> None:
    """Seen by the scrape and told by its host: counted once."""
    layout = TableLayout(workers=1, engines=("pool:a/0",), apis=(), peers=True)
    with closing(SharedLoadTable(tmp_path / "shared", layout)) as board:
        put(board, LoadCell.SEQUENCES, 2.0)
        put(board, LoadCell.CONTEXT_TOKENS, 100.0)
        PeerLoadRow(board).write(0, PeerEngineLoad(3, 300, 0, 512), 0.5)
        watch.observe_sample(replace(SAMPLE, running=6, kv_usage_ratio=0.6), board, 1.0)
        watch.publish(board)
        published = board.published(0)
        assert published[EngineCell.FOREIGN_SEQUENCES] == 1.0  # of neither
        assert published[EngineCell.FOREIGN_KV_TOKENS] == 600.0 - 400.0 - 5 * 16
        PeerLoadRow(board).clear()  # as without an exchange: the scrapes show it
        for now_s in (2.0, 3.0, 4.0):
            watch.observe_sample(replace(SAMPLE, running=6, kv_usage_ratio=0.6), board, now_s)
        watch.publish(board)
        assert board.published(0)[EngineCell.FOREIGN_SEQUENCES] == 4.0


def test_what_other_hosts_queue_is_no_prefill_of_ours(watch, tmp_path: Path) -> None:
    layout = TableLayout(workers=1, engines=("pool:a/0",), apis=(), peers=True)
    with closing(SharedLoadTable(tmp_path / "shared", layout)) as board:
        for now_s in range(1, 40):
            PeerLoadRow(board).write(0, PeerEngineLoad(1, 0, 1000.0 * now_s, 0, 1), float(now_s))
            watch.observe_sample(SAMPLE, board, float(now_s))
        assert watch.loops.prefill_rate == 0.0
        put(board, LoadCell.QUEUED_PREFILL_TOKENS, 50_000.0)
        watch.observe_sample(SAMPLE, board, 41.0)
        assert watch.loops.prefill_rate > 0.0


def test_the_page_of_before_is_not_read_again(watch, monkeypatch) -> None:
    read: list[str] = []

    def parse(page: str, dialect: str | None) -> EngineSample:
        assert dialect == "vllm"
        read.append(page)
        if page == "bad":
            raise ProbeFailed(page)
        return replace(SAMPLE, running=len(read))

    monkeypatch.setattr(scrape, "parse", parse)
    first = watch.parse("a", "vllm")
    assert watch.parse("a", "vllm") is first
    assert watch.parse("b", "vllm").running == 2
    for _ in range(2):
        with pytest.raises(ProbeFailed):
            watch.parse("bad", "vllm")
    assert watch.parse("b", "vllm").running == 5
    watch.reset(1.0)
    assert watch.parse("b", "vllm").running == 6
    assert read == ["a", "b", "bad", "bad", "b", "b"]


@pytest.mark.parametrize(("engines", "turns"), [(1, 1), (4, 1), (5, 2), (64, 16)])
def test_few_engines_are_read_at_once_and_many_are_spread(engines: int, turns: int) -> None:
    times = Counter(turn_s(row, engines, 0.5) for row in range(engines))
    assert sorted(times) == [0.5 * turn / turns for turn in range(turns)]
    assert max(times.values()) - min(times.values()) <= 1
    assert max(times.values()) <= 4
