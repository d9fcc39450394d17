"""Capacity inside a TPOT promise: the largest batch that keeps it, and no larger one does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.capacity import SloCapacity, TrafficShape, capacity_at
from backends.simulator.profiles import PROFILES
from backends.stepmodel import StepModel

STEP = StepModel(a_s=0.010, b_s=0.001, c_s=0.0, d_s=0.0, t0_s=0.0)
EVEN = TrafficShape(prompt_tokens=100, output_tokens=100)
PLENTY = 10**9


def steady_step_s(step: StepModel, shape: TrafficShape, n: int) -> float:
    """`n` sequences half way through their outputs; those that end are replaced, and prefilled."""
    middle = shape.prompt_tokens + shape.output_tokens / 2
    joining = n * shape.prompt_tokens / shape.output_tokens
    return step.step_s(sequences=n, context_tokens=n * middle, prefill_tokens=joining)


@pytest.mark.parametrize(
    ("tpot_s", "kv_tokens", "max_num_seqs", "sequences"),
    [
        (0.0305, PLENTY, PLENTY, 20),  # time: 10 ms + 20 * 1 ms
        (0.0305, 200 * 7, PLENTY, 7),  # KV: 200 tokens a sequence
        (0.0305, 200 * 7 + 199, PLENTY, 7),
        (0.0305, PLENTY, 5, 5),  # the batch limit
    ],
)
def test_the_scarcest_of_time_kv_and_batch_decides(tpot_s, kv_tokens, max_num_seqs, sequences):
    found = capacity_at(
        STEP, EVEN, tpot_s=tpot_s, kv_capacity_tokens=kv_tokens, max_num_seqs=max_num_seqs
    )
    rate = sequences / (0.010 + 0.001 * sequences)
    assert found == SloCapacity(sequences, pytest.approx(rate), pytest.approx(rate))


@pytest.mark.parametrize(
    ("tpot_s", "kv_tokens"),
    [
        (0.0105, PLENTY),  # one sequence takes 11 ms
        (0.005, PLENTY),  # less than the constant
        (1.0, 199),  # not one request fits
    ],
)
def test_without_room_for_one_there_is_no_capacity(tpot_s, kv_tokens):
    limits = {"kv_capacity_tokens": kv_tokens, "max_num_seqs": PLENTY}
    assert capacity_at(STEP, EVEN, tpot_s=tpot_s, **limits) is None


def test_input_flows_in_proportion_to_the_prompts():
    shape = TrafficShape(prompt_tokens=300, output_tokens=100)
    limits = {"kv_capacity_tokens": PLENTY, "max_num_seqs": PLENTY}
    found = capacity_at(STEP, shape, tpot_s=0.05, **limits)
    assert found is not None
    assert found.input_tokens_per_s == pytest.approx(3 * found.output_tokens_per_s)


@given(
    name=st.sampled_from(sorted(PROFILES)),
    prompt=st.integers(1, 8_000),
    output=st.integers(1, 2_000),
    tpot_ms=st.integers(5, 200),
)
def test_the_promise_is_kept_and_one_more_would_break_it(name, prompt, output, tpot_ms):
    step, shape = PROFILES[name].shape.step, TrafficShape(prompt, output)
    tpot_s = tpot_ms / 1000
    limits = {"kv_capacity_tokens": PLENTY, "max_num_seqs": PLENTY}
    found = capacity_at(step, shape, tpot_s=tpot_s, **limits)
    n = 0 if found is None else found.sequences
    slack_s = 1e-9  # both sides are floating sums of the same terms
    assert steady_step_s(step, shape, n) <= tpot_s + slack_s or n == 0
    assert steady_step_s(step, shape, n + 1) > tpot_s - slack_s
