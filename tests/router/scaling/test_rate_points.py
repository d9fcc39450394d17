"""Means of what is limited, beside a sum over all errors."""

from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.scaling.rate_points import RatePoints


@given(
    st.lists(st.floats(-3, 3), min_size=1, max_size=8),
    st.floats(-3, 5),
    st.floats(-1, 30),
    st.sampled_from([0.0, 0.1, 2.0]),
)
def test_a_limited_mean_is_the_sum_over_errors(errors, level, limit, base) -> None:
    points = RatePoints(tuple((error, 1 / len(errors)) for error in errors))
    rates = points.rates(level, base)
    assert sorted(rate for rate, _ in rates) == pytest.approx(
        sorted(max(0.0, exp(level + error) - base) for error in errors)
    )
    expected = sum(share * min(max(0.0, limit), rate) for rate, share in rates)
    assert points.mean_up_to(limit, level, base) == pytest.approx(expected, abs=1e-9)
