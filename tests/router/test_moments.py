"""Running statistics: right against the plain computation, bounded, forgetful, foldable."""

import statistics
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.moments import LogHistogram, RecencyCache, RunningMoments


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=200))
def test_moments_equal_the_plain_means(numbers):
    moments = RunningMoments(fade=1000.0)
    for number in numbers:
        moments.add(number, number**2)
    assert moments.mean == pytest.approx(statistics.fmean(numbers))
    assert moments.square == pytest.approx(statistics.fmean(n**2 for n in numbers))
    assert moments.export() == (len(numbers), moments.mean, moments.square)


def test_a_full_cell_follows_a_shift():
    moments = RunningMoments(fade=100.0)
    for _ in range(1000):
        moments.add(10.0, 100.0)
    assert moments.weight <= 101
    for _ in range(200):
        moments.add(50.0, 2500.0)
    assert moments.mean > 40.0
    before = moments.export()
    moments.add(1e9, 1e18, weight=0.0)
    assert moments.export() == before


def test_leaning_on_the_wider_cell():
    moments = RunningMoments(fade=100.0)
    assert moments.lean(5.0, 9.0) == 9.0
    for _ in range(20):
        moments.add(5.0, 25.0)
    assert moments.lean(5.0, 9.0) == 7.0


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=300))
def test_p95_is_never_too_short_and_at_most_a_bin_too_long(numbers):
    histogram = LogHistogram(fade=1e9)
    for number in numbers:
        histogram.add(number)
    histogram.add_bin(0, 1e-9)
    histogram._grown = 1e9  # the figure of this very moment, not of up to 5 % ago
    exact = sorted(numbers)[max(0, -(-95 * len(numbers) // 100) - 1)]
    above = sorted(numbers)[min(len(numbers) - 1, 95 * len(numbers) // 100)]
    assert exact * (1 - 1e-9) <= histogram.p95() <= above * 2 ** (1 / 8) + 1e-6


def test_a_quantile_is_cached_between_five_percents():
    histogram = LogHistogram(fade=1e9)
    for _ in range(1000):
        histogram.add(8)
    assert histogram.p95() == 8.0
    for _ in range(40):
        histogram.add(1024)
    assert histogram.p95() == 8.0
    for _ in range(40):
        histogram.add(1024)
    assert histogram.p95() == 1024.0


def test_brief_answers_are_those_of_two_to_eight_tokens():
    histogram = LogHistogram(fade=1e9)
    assert histogram.brief_share() == 0.0
    for number in (1, 2, 5, 8, 9, 400, 1, 400):
        histogram.add(number)
    assert histogram.brief_share() == pytest.approx(3 / 8)
    histogram.age(0.5)
    assert histogram.brief_share() == pytest.approx(3 / 8)


def test_an_empty_histogram_and_a_faded_one():
    histogram = LogHistogram(fade=4.0)
    assert histogram.p95() == 0.0
    histogram.add(1000)
    for _ in range(200):
        histogram.add(2)
    assert histogram.weight <= 6.0
    assert len(histogram.bins) == 1  # the old outlier faded away
    assert histogram.p95() == 2.0


def test_what_was_cut_off_says_nothing_of_what_lies_beyond():
    histogram = LogHistogram(fade=1e9)
    for _ in range(90):
        histogram.add(8, cut=True)
    assert histogram.p95() == inf
    for _ in range(10):
        histogram.add(256)  # of those that got past 8, all ended here
    assert histogram.p95() == 256.0


@given(
    st.lists(st.tuples(st.integers(1, 5000), st.booleans()), min_size=1, max_size=200),
    st.integers(1, 5000),
)
def test_p95_with_cuts_is_at_least_that_of_the_same_lengths_uncut(seen, limit):
    cut, plain = LogHistogram(fade=1e9), LogHistogram(fade=1e9)
    for number, ended in seen:
        cut.add(min(number, limit), cut=ended and number > limit)
        plain.add(min(number, limit))
    assert cut.p95() >= plain.p95()
    again = LogHistogram(fade=1e9)
    for index, weight, part in cut.export():
        again.add_bin(index, weight, part)
    assert (again.bins, again.cuts) == (cut.bins, cut.cuts)


def test_the_least_recent_goes_first():
    recent = RecencyCache(2, list)
    recent.touch("a").append(1)
    recent.touch("b")
    recent.touch("a").append(2)
    recent.touch("c")
    assert recent.get("b") is None
    assert recent.get("a") == [1, 2]
    assert (recent.dropped, [key for key, _ in recent.items()]) == (1, ["a", "c"])
