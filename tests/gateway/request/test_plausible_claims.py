"""A claim is plausible up to what its model is stated to read and write, and no further."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.request.plausible_claims import (
    CONTEXT_UNSTATED,
    SEARCHES_UNSTATED,
    ClaimTerms,
    plausible_claim,
    plausible_pusd,
    plausible_tokens,
)
from gateway.request.usage_checks import TEMPLATE_TOKENS, UsageBounds
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceTerms, rates_from
from ledger.prices.modellimits import ModelLimits
from router.prompts import RequestUnits
from router.request_kinds import RequestKind
from router.target_output import OVERRUN_LIMIT
from router.types import OutputMoments, RoutingRequest

HELD = UsageBounds(choices=2, output=100, told=True, prompt=50)
LIMITS = ModelLimits(output_tokens=1_000, context_tokens=8_000)
PRICE = Price(1, "p/m", "test", 0, PriceTerms(rates_from({"input": 2, "output": 10})))
counts = st.integers(0, 10**7)


@pytest.mark.parametrize(
    ("limits", "elsewhere", "prompt", "output"),
    [
        (LIMITS, False, 50 + TEMPLATE_TOKENS, 2_000),
        (LIMITS, True, 8_000, 2_000),
        (None, True, CONTEXT_UNSTATED, 2 * OVERRUN_LIMIT),
        (ModelLimits(10, 20), True, 50, 100),  # what was held for is plausible always
    ],
)
def test_a_false_figure_counts_one_longest_answer(limits, elsewhere, prompt, output):
    claim = TokenCounts(input=10**7, output=10**7, reasoning=10**7)
    found = plausible_tokens(claim, ClaimTerms(HELD, limits, elsewhere), 0)
    assert (found.prompt, found.output, found.reasoning) == (prompt, output, output)


@pytest.mark.parametrize(("contexts", "prompt"), [(1, 9_000), (2, 11_048), (None, 11_048)])
def test_each_text_of_a_list_may_fill_a_context(contexts, prompt):
    """A list of embeddings has as many contexts as texts."""
    held, claim = HELD._replace(prompt=9_000), TokenCounts(input=10**7)
    terms = ClaimTerms(held, LIMITS, False, contexts)
    assert plausible_tokens(claim, terms, 0).prompt == prompt


@pytest.mark.parametrize(("stated", "most"), [(0, SEARCHES_UNSTATED), (3, 3)])
def test_searches_count_up_to_the_prices_most(stated, most):
    claim = TokenCounts(input=1, output=1, searches=10**6)
    assert plausible_tokens(claim, ClaimTerms(HELD, None, True), stated).searches == most


def test_what_an_honest_model_makes_beside_its_limit_is_all_plausible():
    claim = TokenCounts(input=50, output=900, reasoning=850)
    assert plausible_tokens(claim, ClaimTerms(HELD, LIMITS, False), 0) == claim
    assert plausible_pusd(claim, PRICE, None, booked_pusd=1_100, claimed_pusd=9_100) == 8_000


@given(prompt=counts, output=counts, booked=counts, surplus=counts)
def test_a_plausible_part_is_within_the_surplus(prompt, output, booked, surplus):
    claim = TokenCounts(input=prompt, output=output)
    told = plausible_tokens(claim, ClaimTerms(HELD, LIMITS, False), 0)
    assert told.prompt <= prompt
    assert told.output <= output
    claimed = booked + surplus
    part = plausible_pusd(told, PRICE, None, booked_pusd=booked, claimed_pusd=claimed)
    assert 0 <= part <= surplus


@pytest.mark.parametrize(("limits", "output"), [(LIMITS, 1_000), (None, 5_000)])
def test_output_beside_units_narrows_as_any(limits, output):
    """Red before: what such a model made beside its hold narrowed nothing."""
    request = RoutingRequest(
        RequestKind.RERANK, "m", 40, 160, 0, OutputMoments(0, 1.0, 1.0, 1.0), extent=RequestUnits()
    )
    frozen = SimpleNamespace(limits=limits, prompt_bound=lambda asked: asked.prompt_tokens_bound)
    attempt = SimpleNamespace(
        plan=SimpleNamespace(request=request), step=SimpleNamespace(frozen=frozen)
    )
    found = plausible_claim(attempt, TokenCounts(input=900, output=5_000))
    assert (found.input, found.output) == (160, output)
