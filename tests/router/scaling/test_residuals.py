"""Errors of forecasts: what the histogram keeps of them, and for how long."""

import random
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.scaling.residuals import (
    FEW_POINTS,
    MANY_POINTS,
    ErrorHistogram,
    ErrorWidth,
    widened,
)


def filled(errors: list[float], keep: float = 1.0) -> ErrorHistogram:
    histogram = ErrorHistogram(keep)
    for error in errors:
        histogram.add(error)
    return histogram


@given(st.lists(st.floats(-2.9, 2.9), max_size=60), st.sampled_from([FEW_POINTS, MANY_POINTS]))
def test_points_are_a_distribution_with_the_errors_mean(errors, edges) -> None:
    points = filled(errors).points(edges)
    assert sum(share for _, share in points) == pytest.approx(1)
    pretended = 9  # errors that stand for what is not observed; their mean is 0
    mean = sum(errors) / (len(errors) + pretended)
    assert sum(error * share for error, share in points) == pytest.approx(mean, abs=1e-9)
    assert all(low[0] <= high[0] + 1e-9 for low, high in pairwise(points))


def test_quantiles_of_normal_errors() -> None:
    rng = random.Random(3)
    histogram = filled([rng.gauss(0, 0.2) for _ in range(20_000)])
    for share, expected in ((0.1, -0.256), (0.5, 0.0), (0.9, 0.256), (0.98, 0.411)):
        assert histogram.quantile(share) == pytest.approx(expected, abs=0.03)


def test_old_errors_are_forgotten() -> None:
    histogram = filled([1.0] * 300 + [0.0] * 300, keep=0.95)
    assert histogram.quantile(0.98) == pytest.approx(0, abs=0.01)
    assert filled([1.0] * 300 + [0.0] * 300).quantile(0.98) == pytest.approx(1, abs=0.01)


def test_memory_is_constant_and_weights_stay_finite() -> None:
    histogram = filled([0.01] * 5_000, keep=0.99)
    memory = histogram.memory()
    assert sum(memory["weights"]) < 101 + 9
    other = ErrorHistogram(0.99)
    other.recall(memory)
    for mine, theirs in zip(histogram.points(), other.points(), strict=True):
        assert mine == pytest.approx(theirs)


def test_huge_errors_count_as_the_largest() -> None:
    assert filled([inf] * 50 + [-inf]).quantile(0.9) == pytest.approx(3.0)


@pytest.mark.parametrize("name", ["weights", "sums"])
def test_damaged_memory_is_named(name) -> None:
    memory = ErrorHistogram(0.9).memory()
    memory[name] = [1.0]
    with pytest.raises(ValueError, match=name):
        ErrorHistogram(0.9).recall(memory)


@given(st.lists(st.floats(-3.0, 3.0), max_size=60), st.sampled_from([10.0, 60.0, 600.0]))
def test_a_width_stays_within_a_third_and_three_times_and_goes_through_memory(
    errors, step_s
) -> None:
    width, other = ErrorWidth(step_s), ErrorWidth(step_s)
    assert width.ratio == 1.0
    for error in errors:
        width.add(error)
    assert 0.3 <= width.ratio <= 3.0
    other.recall(width.memory())
    assert other.ratio == width.ratio


def test_sizes_of_zero_are_no_memory() -> None:
    with pytest.raises(ValueError, match="sizes"):
        ErrorWidth(60.0).recall([0.0, 0.1])


def test_widened_points_keep_their_probabilities() -> None:
    assert widened(((-0.1, 0.25), (0.2, 0.75)), 2.0) == ((-0.2, 0.25), (0.4, 0.75))
