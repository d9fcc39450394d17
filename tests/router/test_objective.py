"""Dollars, likely misses and densities."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.forecast import work_of
from router.objective import (
    PRIOR_TPOT_MS,
    PRIOR_TTFT_MS,
    api_objective,
    density,
    forecast_api,
    miss_probability,
)
from router.request_kinds import RequestKind
from router.types import Slo


def test_the_reference_api_makes_half_a_second_in_five_of_eight():
    assert 1 - miss_probability(450.0, 0.35, 500.0) == pytest.approx(0.62, abs=0.005)


@pytest.mark.parametrize(
    ("median", "sigma", "limit", "probability"),
    [
        (100.0, 0.5, 100.0, 0.5),
        (100.0, 0.0, 100.0, 0.0),
        (101.0, 0.0, 100.0, 1.0),
        (math.nan, 0.5, 1e9, 1.0),
        (math.inf, 0.5, 1e9, 1.0),
        (-5.0, 0.5, 1e9, 1.0),
        (0.0, 0.5, 1e9, 1.0),
        (100.0, math.nan, 1e9, 1.0),
        (100.0, -1.0, 1e9, 1.0),
    ],
)
def test_miss_probability(median, sigma, limit, probability):
    assert miss_probability(median, sigma, limit) == pytest.approx(probability)


@given(
    median=st.floats(1, 1e5),
    sigma=st.floats(0.01, 3),
    limits=st.tuples(st.floats(1, 1e5), st.floats(1, 1e5)),
)
def test_a_looser_limit_is_missed_no_oftener(median, sigma, limits):
    tight, loose = sorted(limits)
    assert miss_probability(median, sigma, loose) <= miss_probability(median, sigma, tight)


def test_ttft_and_tpot_miss_together(ask, rule, api):
    request, candidate = ask(), api({"ttft_median_ms": 500.0, "tpot_median_ms": 50.0})
    both = forecast_api(work_of(request, rule()), candidate)
    assert both.miss_probability == pytest.approx(0.75)
    this_forecast_api = forecast_api(work_of(request, rule(slo=Slo(ttft_ms=500.0))), candidate)
    assert this_forecast_api.miss_probability == pytest.approx(0.5)
    none = forecast_api(work_of(request, rule(slo=Slo())), candidate)
    assert none.miss_probability == 0.0


def test_an_embedding_has_no_tpot(ask, rule, api):
    work = work_of(ask(kind=RequestKind.EMBEDDING), rule(slo=Slo(ttft_ms=300.0, tpot_ms=0.1)))
    numbers = forecast_api(work, api())
    assert numbers.tpot_ms is None
    assert numbers.miss_probability == pytest.approx(0.5)


def test_the_prior_stands_in_before_any_observation(ask, rule, api):
    unseen = api({"ttft_median_ms": None, "tpot_median_ms": None})
    numbers = forecast_api(work_of(ask(), rule()), unseen)
    assert (numbers.ttft_ms, numbers.tpot_ms) == (PRIOR_TTFT_MS, PRIOR_TPOT_MS)


def test_objective_is_price_plus_penalty(ask, rule, api):
    likely = forecast_api(work_of(ask(), rule()), api({"ttft_median_ms": 500.0}))
    assert api_objective(api(), 1000, likely) == pytest.approx(1_000_500)
    assert api_objective(api(expected_pusd=None), 1000, likely) == math.inf


def test_density():
    assert density(10.0, 2.0) == 5.0
    assert density(10.0, 0.0) == math.inf
    assert density(10.0, None) is None
