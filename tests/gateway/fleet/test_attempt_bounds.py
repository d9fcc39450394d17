"""The most that an attempt may be charged is made of its prompt's bound and its longest answer."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.fleet.attempt_bounds import (
    OUTPUT_BOUND_TOKENS,
    api_bound_pusd,
    expected_tokens,
    output_bound,
    own_bound_pusd,
)
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceTerms, rates_from
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest, StepModel

STEP = StepModel(t0_s=0.5, a_s=0.01, b_s=0.001, c_s=1e-6, d_s=1e-4)
ENGINE: Any = SimpleNamespace(step=STEP, step_feedback=2.0)
REQUEST = RoutingRequest(
    kind=RequestKind.CHAT,
    model="chat",
    prompt_tokens=200,
    prompt_tokens_bound=300,
    max_tokens=100,
    output=OutputMoments(count=50, mean=80.0, mean_square=7000.0, p95=150.0),
)


def test_an_own_request_is_bounded_by_its_prefill_and_a_full_step_for_each_token() -> None:
    seconds = 0.5 + 300 * 1e-4 + 100 * (0.01 + 0.001 + 1e-6 * (300 + 100))
    bound = own_bound_pusd(7200 * 10**9, ENGINE, REQUEST, 100)
    assert bound == pytest.approx(2 * seconds * 2 * 10**9, rel=1e-9)
    choices = own_bound_pusd(7200 * 10**9, ENGINE, replace(REQUEST, n=4), 25)
    assert choices == bound


def test_what_has_no_rate_or_no_step_model_is_charged_nothing() -> None:
    assert own_bound_pusd(None, ENGINE, REQUEST, 100) == 0
    unknown: Any = SimpleNamespace(step=None, step_feedback=1.0)
    assert own_bound_pusd(10**9, unknown, REQUEST, 100) == 0


def test_an_api_may_bill_all_choices_and_what_it_adds_to_each() -> None:
    price = Price(1, "x/m", "test", 0, PriceTerms(rates_from({"input": 10, "output": 40})))
    assert api_bound_pusd(price, REQUEST, 100) == 300 * 10 + 100 * 40
    asked = replace(REQUEST, n=3)
    assert api_bound_pusd(price, asked, 100, allowance_tokens=7) == 3_000 + 3 * 107 * 40


def test_what_is_expected_is_no_more_than_the_client_allows() -> None:
    assert expected_tokens(REQUEST) == TokenCounts(input=200, output=80)
    assert expected_tokens(replace(REQUEST, max_tokens=9, n=2)) == TokenCounts(200, output=18)
    assert (output_bound(REQUEST), output_bound(replace(REQUEST, max_tokens=None))) == (
        100, OUTPUT_BOUND_TOKENS,
    )  # fmt: skip
