"""A quote is the price's own arithmetic, found once."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.journals.records import TokenCounts
from ledger.prices.quotes import PriceQuote
from ledger.prices.rates import (
    KINDS,
    Price,
    PriceTerms,
    TierRates,
    TokenRates,
    bound_pusd,
    cost_pusd,
)

COUNT = st.integers(0, 10**6)
RATES = st.builds(TokenRates, **dict.fromkeys(KINDS, COUNT))
SCHEDULES = st.sampled_from(["standard", "priority"]).flatmap(
    lambda tier: st.builds(TierRates, st.just(tier), st.integers(1, 1000), RATES)
)
TERMS = st.builds(
    PriceTerms,
    RATES,
    st.lists(SCHEDULES, max_size=1).map(tuple),
    request_pusd=COUNT,
    uplift_ppm=st.sampled_from([0, 100_000]),
    inclusive=st.booleans(),
)


@given(
    terms=TERMS, prompt=st.integers(0, 2000), output=st.integers(0, 2000), n=st.integers(1, 8),
    has_sound=st.booleans(),
)  # fmt: skip
def test_it_is_the_prices_own_arithmetic(terms, prompt, output, n, has_sound) -> None:
    price = Price(1, "x/m", "test", 0, terms)
    quote, tokens = PriceQuote(price), TokenCounts(input=prompt, output=output)
    assert quote.cost_pusd(tokens) == cost_pusd(tokens, price)
    assert quote.bound_pusd(prompt, n * output, has_sound=has_sound) == bound_pusd(
        price, prompt_tokens=prompt, output_tokens=output, n=n, audio=has_sound
    )
