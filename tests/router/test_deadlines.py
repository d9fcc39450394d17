"""The tightest promise: by its share of the arrivals, and only where an engine could keep it."""

import math
from dataclasses import replace

import pytest

from router.deadlines import (
    BINS_PER_OCTAVE,
    DEADLINES,
    LEAST_SHARE,
    bearable_ms,
    deadline_bin,
    keepable_ms,
    tightest_ms,
)
from router.types import StepModel

RATIO = 2.0 ** (1 / BINS_PER_OCTAVE)
STEP = StepModel(a_s=0.010, b_s=0.001, c_s=0.0, d_s=1e-4, t0_s=0.020)


def counted(*limits: tuple[float, int]) -> list[float]:
    counts = [0.0] * DEADLINES
    for limit_ms, number in limits:
        counts[deadline_bin(limit_ms)] += number
    return counts


@pytest.mark.parametrize("limit_ms", [1.5, 50.0, 200.0, 500.0, 30_000.0])
def test_a_bin_is_never_tighter_than_what_is_in_it(limit_ms) -> None:
    found = tightest_ms(counted((limit_ms, 1)), 1)
    assert limit_ms <= found <= limit_ms * RATIO * 1.000001


def test_what_lies_outside_counts_at_the_edge() -> None:
    bins = [deadline_bin(limit) for limit in (math.nan, -1.0, 0.0, 0.5, 1.0, math.inf, 1e12)]
    assert bins == [0, 0, 0, 0, 0, DEADLINES - 1, DEADLINES - 1]


def test_one_odd_request_bends_nothing() -> None:
    most = 1000
    few = math.floor(LEAST_SHARE * most) - 1
    assert tightest_ms(counted((200.0, few), (500.0, most - few)), most) > 490
    assert tightest_ms(counted((200.0, few + 1), (500.0, most)), most) < 210
    assert tightest_ms(counted((200.0, few)), most) is None  # the others promise nothing
    assert tightest_ms(counted(), most) is None
    assert tightest_ms(counted(), 0) is None


def test_only_promises_that_an_empty_engine_keeps(own) -> None:
    engine = replace(own().engine, step=STEP, step_feedback=1.0)  # 20 + 11 + 0.1 a token
    assert keepable_ms(200.0, 1600, engine) == 200.0
    assert keepable_ms(200.0, 1700, engine) is None
    assert keepable_ms(200.0, 1600, replace(engine, step_feedback=1.5)) is None
    for absent in (keepable_ms(None, 1, engine), keepable_ms(200.0, 1, None)):
        assert absent is None
    assert keepable_ms(200.0, 1, replace(engine, step=None)) is None
    assert [bearable_ms(limit, STEP) for limit in (11.0, 10.9, None)] == [11.0, None, None]
    assert bearable_ms(11.0, None) is None
