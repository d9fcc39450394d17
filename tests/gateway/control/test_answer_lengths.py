"""What the ledger tells of lengths: by age, and of answers since the newest reset."""

import pytest

from gateway.control.answer_lengths import is_forgotten, known_lengths
from gateway.control.estimate_resets import EstimateReset
from ledger.lengths import AnswerLength

KEY = ("m", "t")
ANSWER = AnswerLength(*KEY, 100, 50, cut=False, opened_us=10)


@pytest.mark.parametrize(
    ("reset", "forgotten"),
    [
        (EstimateReset(1, None, None, 11), True),
        (EstimateReset(1, "m", "t", 11), True),
        (EstimateReset(1, "m", "t", 10), False),  # it came with the reset
        (EstimateReset(1, "n", None, 11), False),
        (EstimateReset(1, None, None, 11, "p/m"), False),  # of a target
    ],
)
def test_a_reset_passes_over_what_was_before_it(reset, forgotten) -> None:
    assert is_forgotten(ANSWER, reset) is forgotten
    mean = known_lengths([ANSWER], 0.0, [reset]).mean(KEY)
    assert mean == (None if forgotten else 50.0)
