"""The arithmetic of a benchmark, against figures worked out by hand or by another way."""

import random
from dataclasses import replace
from decimal import Decimal

import pytest

from backends.engine.benchfigures import (
    PERCENTILES,
    BenchSlo,
    RequestSample,
    cost_pusd_per_million,
    percentile,
    percentiles,
    point,
    saturation,
)

ONE = RequestSample(0.0, 100, 11, 0.5, 1.5, gaps_s=(0.1,) * 10)


def test_percentiles_lie_between_the_two_nearest():
    assert percentile([1.0, 2.0, 3.0, 4.0], 50) == 2.5
    assert percentile([1.0, 2.0, 3.0, 4.0, 5.0], 99) == pytest.approx(4.96)
    assert percentile([7.0], 90) == 7.0


def test_tpot_is_of_the_tokens_after_the_first():
    assert ONE.tpot_s == pytest.approx(0.1)
    assert replace(ONE, output_tokens=1).tpot_s == pytest.approx(1.0)


def test_nineteen_of_twenty_intervals_hold_the_true_median():
    rng, held = random.Random(1), 0
    for _ in range(50):
        (median, *_) = percentiles([(rng.expovariate(1.0),) for _ in range(60)])
        held += median.low_s <= 0.6931 <= median.high_s
    assert 42 <= held <= 50


def test_tokens_of_one_request_are_drawn_together():
    """Twenty requests of 50 like gaps are twenty observations, not a thousand."""
    rng = random.Random(2)
    alike = [[rng.random()] * 50 for _ in range(20)]
    apart = [[value] for group in alike for value in group]
    wide, narrow = percentiles(alike)[0], percentiles(apart)[0]
    assert wide.value_s == narrow.value_s
    assert wide.high_s - wide.low_s > 3 * (narrow.high_s - narrow.low_s)


def test_of_nothing_there_are_no_percentiles():
    assert percentiles([]) == ()
    assert point([], BenchSlo()) is None
    assert point([replace(ONE, error="gone")], BenchSlo()) is None


def test_a_point_counts_failures_and_what_kept_the_promise():
    late = replace(ONE, ttft_s=1.0)
    made = point([ONE, late, replace(ONE, error="gone")], BenchSlo(ttft_s=0.6))
    assert (made.requests, made.failed) == (3, 1)
    assert made.attainment == pytest.approx(1 / 3)
    assert made.good_requests_per_s == pytest.approx(1 / 1.5)
    assert [item.percent for item in made.ttft] == list(PERCENTILES)
    assert made.ttft[0].value_s == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("promise", "kept"),
    [
        (BenchSlo(), True), (BenchSlo(ttft_s=0.5), True), (BenchSlo(ttft_s=0.49), False),
        (BenchSlo(tpot_s=0.11), True), (BenchSlo(tpot_s=0.09), False), (BenchSlo(e2e_s=1.4), False),
    ],
)  # fmt: skip
def test_a_promise_asks_only_what_it_names(promise, kept):
    assert promise.is_met(ONE) is kept
    assert not promise.is_met(replace(ONE, error="gone"))


def test_rates_of_the_whole_and_of_the_steady_part():
    """Ten requests of a second, one begun every second: one token in ten each tenth."""
    row = [replace(ONE, start_s=float(place), ttft_s=0.0, e2e_s=1.0) for place in range(10)]
    made = point(row, BenchSlo())
    assert made.whole.seconds == 10
    assert made.whole.output_tokens == pytest.approx(11.0)
    assert made.whole.requests == pytest.approx(1.0)
    assert made.steady.seconds == 8
    assert made.steady.output_tokens == pytest.approx(11.0)
    assert made.in_flight == pytest.approx(1.0)
    assert point(row[:1], BenchSlo()).steady is None, "no part of a single request is steady"


def points(*rates):
    """Points whose throughput is the second of each pair."""
    return [
        (load, point([replace(ONE, e2e_s=1.0, ttft_s=0.0, output_tokens=tokens)], BenchSlo()))
        for load, tokens in rates
    ]


def test_a_closed_loop_is_saturated_where_more_adds_nothing():
    assert saturation(points((1, 100), (8, 700), (16, 960), (32, 1000)), offered=False) == 16
    assert saturation(points((1, 100), (2, 200)), offered=False) is None


def test_an_open_loop_is_saturated_at_the_last_rate_it_serves():
    this_point = point([replace(ONE, e2e_s=1.0)], BenchSlo())  # a request per second
    assert (
        saturation([(0.5, this_point), (1.0, this_point), (2.0, this_point)], offered=True) == 1.0
    )
    assert saturation([(0.5, this_point), (1.0, this_point)], offered=True) is None
    assert saturation([(2.0, this_point)], offered=True) is None


def test_cost_is_exact_and_names_nothing_without_tokens():
    """3,500,000 / (2,862 x 3,600) = 0.339700287289..."""
    assert cost_pusd_per_million(Decimal("3.50"), 2862.0) == 339_700_287_289
    assert cost_pusd_per_million(Decimal("3.60"), 1000.0) == 10**12
    assert cost_pusd_per_million(Decimal("3.50"), 0.0) is None
