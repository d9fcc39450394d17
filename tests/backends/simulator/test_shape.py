"""What an engine is started with."""

import pytest

from backends.simulator.shape import Event, Shape, TooLargeError, What
from backends.stepmodel import StepModel


def test_capacity_leaves_out_the_reserved_block():
    step = StepModel(a_s=0.0, b_s=0.0, c_s=0.0, d_s=0.0, t0_s=0.0)
    assert Shape(step=step, blocks=2588).kv_capacity_tokens == 2587 * 16


def test_events_have_no_cached_tokens_unless_said():
    assert Event(1.0, "a", What.FIRST, 1).cached == 0


def test_too_large_is_a_value_error():
    with pytest.raises(ValueError, match="do not fit"):
        raise TooLargeError("9 tokens do not fit")
