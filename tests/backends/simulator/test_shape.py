"""What an engine is started with."""

import pytest

from backends.simulator.shape import (
    EngineShape,
    SequenceEvent,
    SequenceEventKind,
    StepTiming,
    TooLargeError,
)
from backends.stepmodel import FittedStepModel


def test_capacity_leaves_out_the_reserved_block():
    step = FittedStepModel(a_s=0.0, b_s=0.0, c_s=0.0, d_s=0.0, t0_s=0.0)
    assert EngineShape(step=step, blocks=2588).kv_capacity_tokens == 2587 * 16


def test_events_have_no_cached_tokens_unless_said():
    assert SequenceEvent(1.0, "a", SequenceEventKind.FIRST, 1).cached == 0


def test_too_large_is_a_value_error():
    with pytest.raises(ValueError, match="do not fit"):
        raise TooLargeError("9 tokens do not fit")


STEP = FittedStepModel(a_s=1.0, b_s=0.1, c_s=0.01, d_s=0.001, t0_s=5.0)


def test_without_a_pace_the_step_is_what_is_done():
    pace = EngineShape(step=STEP, blocks=9).step_timing
    for tokens in (0, 1, 5000):
        asked = {"sequences": 3, "context_tokens": 10, "prefill_tokens": tokens}
        assert pace.step_s(**asked) == STEP.step_s(**asked)
    assert pace.intake_s(100, 0.9) == STEP.t0_s


def test_an_iteration_with_prefill_lasts_at_least_its_launch():
    pace = StepTiming(STEP, captured_tokens=100, captured_s=2.0, eager_s=3.0)

    def step_s(sequences, tokens):
        return pace.step_s(sequences=sequences, context_tokens=0, prefill_tokens=tokens)

    assert step_s(1, 0) == pytest.approx(1.1)
    assert (step_s(1, 99), step_s(1, 100)) == (2.0, 3.0)
    assert step_s(1, 9000) == pytest.approx(1.1 + 9.0)


def test_who_streams_to_many_reads_later():
    pace = StepTiming(STEP, stream_s=0.5, stream_power=2.0)
    assert pace.intake_s(0, 0.5) == 5.0
    assert pace.intake_s(4, 0.0) == 5.0
    assert pace.intake_s(4, 0.5) == 5.0 + 0.5 * 16
