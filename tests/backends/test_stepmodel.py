"""One engine step: a constant, and a price for each sequence, context token and prefill token."""

import pytest

from backends.stepmodel import FittedStepModel, attended_tokens

STEP = FittedStepModel(a_s=1.0, b_s=0.1, c_s=0.01, d_s=0.001, t0_s=50.0)


@pytest.mark.parametrize(
    ("sequences", "context", "prefill", "seconds"),
    [
        (0, 0, 0, 1.0),
        (3, 0, 0, 1.3),
        (0, 20, 0, 1.2),
        (0, 0, 500, 1.5),
        (3, 20, 500, 2.0),
    ],
)
def test_each_term_adds_its_own_time(sequences, context, prefill, seconds):
    step_s = STEP.step_s(sequences=sequences, context_tokens=context, prefill_tokens=prefill)
    assert step_s == pytest.approx(seconds)


def test_chunks_of_a_prompt_attend_to_as_much_as_the_whole():
    """A prompt of 5,000 behind 1,000 cached tokens, in one piece and in three."""
    whole = attended_tokens(1000, 5000)
    assert whole == 5000 * 1000 + 5000**2 / 2
    parts = [attended_tokens(1000 + begun, tokens) for begun, tokens in ((0, 2048), (2048, 2048))]
    assert sum(parts) + attended_tokens(1000 + 4096, 904) == pytest.approx(whole)
    load = {"sequences": 3, "context_tokens": 20, "prefill_tokens": 500}
    bent = FittedStepModel(STEP.a_s, STEP.b_s, STEP.c_s, STEP.d_s, STEP.t0_s, q_s=1e-6)
    longer_s = bent.step_s(**load, attended_tokens=whole) - STEP.step_s(**load)
    assert longer_s == pytest.approx(1e-6 * whole)


def test_the_constant_of_the_first_token_is_no_part_of_a_step():
    other = FittedStepModel(STEP.a_s, STEP.b_s, STEP.c_s, STEP.d_s, t0_s=0.0)
    load = {"sequences": 2, "context_tokens": 9, "prefill_tokens": 4}
    assert other.step_s(**load) == STEP.step_s(**load)
