"""A price states what is billed beside the limit, and what was seen of it is believed so far."""

import pytest

from gateway.fleet.output_overruns import allowed_overrun, stated_overrun
from ledger.prices.modellimits import ModelLimits
from ledger.prices.rates import PriceTerms, rates_from
from router.target_output import OVERRUN_LIMIT

LIMITS = ModelLimits(64_000, 200_000)


@pytest.mark.parametrize(
    ("outside", "stated", "limits", "most"),
    [
        (False, 0, LIMITS, 0),
        (True, 30_000, LIMITS, 30_000),
        (True, 30_000, None, 30_000),
        (True, 0, LIMITS, 50_000),  # what the prompt of 150,000 leaves of the context
        (True, 0, None, OVERRUN_LIMIT),
    ],
)
def test_a_price_states_what_is_billed_beside_the_limit(outside, stated, limits, most) -> None:
    rates = rates_from({"input": 1, "output": 1})
    terms = PriceTerms(rates, reasoning_outside=outside, reasoning_limit=stated)
    assert stated_overrun(terms, limits, 150_000) == most


@pytest.mark.parametrize(
    ("seen", "limits", "allowed"),
    [(500, LIMITS, 500), (200_000, LIMITS, 64_000), (200_000, None, 200_000)],
)
def test_a_false_figure_raises_a_hold_by_one_longest_answer_at_most(seen, limits, allowed) -> None:
    assert allowed_overrun(seen, limits) == allowed
