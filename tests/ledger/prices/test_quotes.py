"""A quote is the price's own arithmetic, found once."""

from hypothesis import example, given
from hypothesis import strategies as st

from ledger.journals.records import TokenCounts
from ledger.journals.token_kinds import PER_UNIT
from ledger.prices.quotes import PriceQuote
from ledger.prices.rates import (
    KINDS,
    Price,
    PriceTerms,
    ReachableMedia,
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
DRAWN = {
    "rates": RATES,
    "schedules": st.lists(SCHEDULES, max_size=1).map(tuple),
    "request_pusd": COUNT,
    "uplift_ppm": st.sampled_from([0, 100_000]),
    "inclusive": st.booleans(),
    "search_pusd": COUNT,
    "searches_limit": st.integers(0, 60),
}
# What is no amount, and amounts of units that answers in words have none of.
UNDRAWN = {
    "unread", "complete", "reasoning_outside", "reasoning_limit", "image_rule",
    *(kind.price for kind in PER_UNIT if kind.field != "searches"),
}  # fmt: skip
TERMS = st.builds(PriceTerms, **DRAWN)


def test_every_term_of_a_price_is_drawn() -> None:
    """Whatever is in a cost is in its bound, or a hard budget can be passed."""
    unknown = set(PriceTerms.__struct_fields__) - set(DRAWN) - UNDRAWN
    assert not unknown, f"{unknown}: draw it in DRAWN; if it is not an amount, name it in UNDRAWN"
    assert set(DRAWN).isdisjoint(UNDRAWN)
    assert set(DRAWN) | UNDRAWN == set(PriceTerms.__struct_fields__)


@given(
    terms=TERMS, prompt=st.integers(0, 2000), output=st.integers(0, 2000), n=st.integers(1, 8),
    media=st.builds(ReachableMedia, st.booleans(), st.booleans(), st.booleans()),
)  # fmt: skip
def test_it_is_the_prices_own_arithmetic(terms, prompt, output, n, media) -> None:
    price = Price(1, "x/m", "test", 0, terms)
    quote, tokens = PriceQuote(price), TokenCounts(input=prompt, output=output)
    assert quote.cost_pusd(tokens) == cost_pusd(tokens, price)
    made = {"prompt_tokens": prompt, "output_tokens": n * output, "media": media}
    assert quote.bound_pusd(**made) == bound_pusd(price, **made)
    whole = TokenCounts(input=prompt, output=n * output)
    assert quote.cost_pusd(whole) <= quote.bound_pusd(**made)


@given(terms=TERMS, searches=st.integers(0, 60))
def test_searches_up_to_the_stated_most_are_inside_the_bound(terms, searches) -> None:
    price = Price(1, "x/m", "test", 0, terms)
    tokens = TokenCounts(input=5, output=7, searches=min(searches, terms.searches_limit))
    assert cost_pusd(tokens, price) <= PriceQuote(price).bound_pusd(5, 7)


ONE_SEARCH = PriceTerms(TokenRates(*[1] * len(KINDS)), search_pusd=7, searches_limit=1)


@given(terms=TERMS, most=st.integers(1, 60), searches=st.integers(0, 60))
@example(terms=ONE_SEARCH, most=5, searches=5)
def test_a_request_limits_its_own_searches(terms, most, searches) -> None:
    """Held for no more than it may make, and for all of that; a lower limit of the price holds."""
    quote = PriceQuote(Price(1, "x/m", "test", 0, terms))
    limited = quote.limit_searches(most)
    allowed = min(most, terms.searches_limit or most)
    tokens = TokenCounts(input=5, output=7, searches=min(searches, allowed))
    assert cost_pusd(tokens, limited.price) <= limited.bound_pusd(5, 7)
    if terms.search_pusd:
        assert limited.price.terms.searches_limit == allowed
        assert terms.searches_limit == 0 or limited.bound_pusd(5, 7) <= quote.bound_pusd(5, 7)


def test_a_limit_of_searches_answers_for_the_price_that_states_their_fee() -> None:
    unread, hosted = ("max_searches", "search_context_cost_per_query", "odd_cost"), frozenset()
    for fee, left in ((7, ("odd_cost",)), (0, ("max_searches", "odd_cost"))):
        terms = PriceTerms(TokenRates(*[1] * len(KINDS)), search_pusd=fee)
        quote = PriceQuote(Price(1, "x/m", "test", 0, terms), unread)
        assert quote.unlimited_terms(hosted) == ("max_searches", "odd_cost")
        assert quote.limit_searches(3).unlimited_terms(hosted) == left


def test_what_is_unread_is_told_by_the_features_of_a_request() -> None:
    price = Price(1, "x/m", "test", 0, PriceTerms(TokenRates(*[1] * len(KINDS))))
    quote = PriceQuote(price, ("odd_cost", "search_context_cost_per_query"))
    plain, searching = frozenset(), frozenset(["hosted_tools"])
    for _ in range(2):
        assert quote.unlimited_terms(plain) == ("odd_cost",)
        assert quote.unlimited_terms(searching) == quote.unread
    assert PriceQuote(price).unlimited_terms(searching) == ()


def rule(name: str, stated: str = "", upstream: str = "gpt-4o") -> str:
    terms = PriceTerms(TokenRates(**dict.fromkeys(KINDS, 1)), image_rule=stated)
    return PriceQuote(Price(1, name, "test", 0, terms)).picture_rule(upstream)


def test_pictures_are_counted_as_the_price_says_else_as_the_model_is_known_for() -> None:
    assert rule("openai/gpt-4o") == rule("openai/gpt-4o#eu") == "openai-tiles"
    assert rule("openai/gpt-4o", "qwen-28") == rule("acme/m", "qwen-28") == "qwen-28"
    assert rule("acme/gpt-4o") == ""


def test_a_borrowed_price_lends_no_rule_by_its_name() -> None:
    """`prices_as: openai/gpt-4o` says what a token costs, not how a Qwen cuts pictures."""
    assert rule("openai/gpt-4o", upstream="Qwen/Qwen2.5-VL-7B-Instruct") == ""
    assert rule("openai/gpt-4o", "qwen-28", upstream="Qwen/Qwen2.5-VL-7B-Instruct") == "qwen-28"
    assert rule("openai/gpt-4o", upstream="openai/gpt-4o") == "openai-tiles"
