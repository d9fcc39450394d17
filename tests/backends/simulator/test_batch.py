"""k steps at once are the same as k times one: growth, duration, finishes."""

from hypothesis import given
from hypothesis import strategies as st

from backends.simulator.batch import DecodingBatch, SequenceJob
from backends.simulator.kv import BlockPool
from backends.simulator.shape import StepTiming
from backends.stepmodel import FittedStepModel

STEP = FittedStepModel(a_s=0.01, b_s=0.001, c_s=0.0001, d_s=0.001, t0_s=0.0)


def batch_of(lengths, outputs=1000, blocks=10_000):
    pool = BlockPool(blocks=blocks, block_tokens=16)
    batch = DecodingBatch(StepTiming(STEP), pool)
    for place, length in enumerate(lengths):
        job = SequenceJob(f"j{place}", length, outputs, (), 0.0)
        job.base = 1
        batch.add(job)
    return batch, pool


@given(st.lists(st.integers(1, 100), min_size=1, max_size=20), st.integers(1, 80))
def test_growth_is_the_sum_over_sequences(lengths, steps):
    batch, _ = batch_of(lengths)
    expected = sum(-(-(n + steps) // 16) - -(-n // 16) for n in lengths)
    assert batch.growth(steps) == expected


@given(st.lists(st.integers(1, 100), min_size=1, max_size=5), st.floats(0.02, 3.0))
def test_as_many_steps_as_fit_and_no_more(lengths, span_s):
    batch, _ = batch_of(lengths)
    steps, end_s = batch.steps(0.0, span_s, None, None)
    duration, context = 0.0, sum(lengths)
    for _ in range(steps):
        duration += STEP.step_s(sequences=len(lengths), context_tokens=context, prefill_tokens=0)
        context += len(lengths)
    assert abs(duration - end_s) < 1e-9
    following = STEP.step_s(sequences=len(lengths), context_tokens=context, prefill_tokens=0)
    assert steps == 1 or end_s <= span_s < end_s + following + 1e-9


def test_nobody_finishes_before_the_last_of_the_steps():
    batch, _ = batch_of([10, 20], outputs=8)
    steps, _ = batch.steps(0.0, 1e9, None, None)
    assert steps == 7
    batch.advance(steps)
    assert [job.id for job in batch.pop_finished()] == ["j0", "j1"]


def test_an_arrival_stops_the_run_at_the_next_boundary():
    batch, _ = batch_of([10])
    first = batch.step_s(0)
    assert batch.steps(0.0, 1e9, first * 0.5, None)[0] == 1
    assert batch.steps(0.0, 1e9, first * 1.5, None)[0] == 2


def test_steps_stop_where_the_blocks_end():
    batch, pool = batch_of([16], blocks=3)
    pool.grow(1)
    assert batch.steps(0.0, 1e9, None, None)[0] == 16


def test_leaving_says_how_many_blocks_to_give_back():
    batch, pool = batch_of([16])
    job = next(batch.members())
    batch.reserve(1)
    assert pool.used == 1
    batch.remove(job)  # while the step is in progress: its block is taken already
    assert job.blocks == 2
    assert batch.context_tokens == 0


def test_a_limit_of_one_step_is_kept():
    batch, _ = batch_of([10])
    assert batch.steps(0.0, 1e9, None, 1)[0] == 1
