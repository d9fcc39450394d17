"""Perplexity's fee of a request goes by the depth of its search, which usage tells."""

import pytest

from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, tier_cost_pusd
from ledger.prices.bundled import bundled_seed
from ledger.prices.rates import STANDARD, bound_pusd
from ledger.prices.search_depths import charged_depth, has_depths

FEES = {"search-low": 5, "search-medium": 8, "search-high": 12, STANDARD: 12}
TOKENS = TokenCounts(input=20, output=50)


@pytest.fixture(scope="module")
def sonar() -> Price:
    terms = next(draft.terms for draft in bundled_seed().drafts if draft.name == "perplexity/sonar")
    return Price(1, "perplexity/sonar", "t", 0, terms)


@pytest.mark.parametrize(
    ("told", "asked", "tier"),
    [
        ({"search_context_size": "low"}, None, "search-low"),
        ({"search_context_size": "low"}, "high", "search-low"),
        ({"search_context_size": "high"}, "low", "search-high"),
        ({}, "medium", "search-medium"),
        ({}, "low", "search-low"),
        ({}, None, STANDARD),
        ({"search_context_size": "vast"}, "low", STANDARD),
        ({"search_context_size": 5}, None, STANDARD),
        ({}, ["low"], STANDARD),
    ],
)  # fmt: skip
def test_the_depth_that_is_told_counts_else_the_asked_one_else_the_dearest(
    sonar: Price, told, asked, tier
) -> None:
    """Every depth was booked at the dearest fee, as reported and without a mark."""
    assert has_depths(sonar.terms)
    assert charged_depth(sonar.terms, [told], asked) == tier
    cost, is_listed = tier_cost_pusd(TOKENS, sonar, tier)
    assert (cost, is_listed) == (FEES[tier] * 10**9 + 70 * 10**6, True)
    assert cost <= bound_pusd(sonar, prompt_tokens=20, output_tokens=50)


def test_of_several_depths_that_an_answer_tells_the_dearest_counts(sonar: Price) -> None:
    told = [{"search_context_size": depth} for depth in ("low", "medium", "low")]
    assert charged_depth(sonar.terms, told, None) == "search-medium"
