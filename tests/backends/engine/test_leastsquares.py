"""Non-negative least squares: exact where the data are, zero where they point below zero."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.engine.leastsquares import solve

ROWS = [[1.0, n, c, p] for n in (1, 4, 16) for c in (50, 3000) for p in (0, 700)]


@given(st.lists(st.floats(0.0, 10.0), min_size=4, max_size=4))
def test_exact_data_give_back_what_made_them(truth):
    targets = [sum(x * v for x, v in zip(row, truth, strict=True)) for row in ROWS]
    solution = solve(ROWS, targets)
    for value, wanted in zip(solution.values, truth, strict=True):
        assert value == pytest.approx(wanted, abs=1e-3, rel=1e-3)


def test_nothing_goes_below_zero():
    rows = [[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]]
    solution = solve(rows, [3.0, 2.0, 1.0])
    assert solution.values[1] == 0.0
    assert solution.values[0] == pytest.approx(2.0)
    assert solution.residual > 0.5


def test_columns_that_cannot_be_told_apart_have_no_finite_deviation():
    solution = solve([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], [1.0, 2.0, 3.0])
    assert all(math.isinf(deviation) for deviation in solution.deviations)


def test_noise_widens_the_deviation():
    rows = [[1.0, float(x)] for x in range(10)]
    exact = solve(rows, [1.0 + x for x in range(10)])
    noisy = solve(rows, [1.0 + x + (0.5 if x % 2 else -0.5) for x in range(10)])
    assert exact.deviations[1] < 1e-6 < noisy.deviations[1]


@pytest.mark.parametrize(("rows", "targets"), [([], []), ([[1.0]], [1.0, 2.0])])
def test_rows_and_targets_must_match(rows, targets):
    with pytest.raises(ValueError, match="one target per row"):
        solve(rows, targets)
