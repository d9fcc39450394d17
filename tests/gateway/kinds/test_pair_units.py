"""Pairs of texts: a bound holds whatever a target counts, and each pair is read by itself."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.http.body import decode_members
from gateway.kinds.pair_units import PAIR_UNITS, bytes_beside, extent_of_pairs
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceTerms, cost_pusd, rates_from
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest

SIZES = st.lists(st.integers(1, 20_000), min_size=1, max_size=300)


@given(st.integers(0, 5_000), SIZES, st.integers(0, 10**9), st.integers(0, 10**9))
def test_the_bound_covers_tokens_and_searches(query, sizes, search_pusd, input_pusd) -> None:
    extent = extent_of_pairs(query, sizes)
    assert 0 < extent.longest <= 1
    assert 0 < extent.searches <= extent.searches_bound
    rates = rates_from({"input": input_pusd, "output": 0})
    price = Price(1, "a/b", "test", 0, PriceTerms(rates, search_pusd=search_pusd))
    output = OutputMoments(0, 1.0, 1.0, 1.0)
    asked = RoutingRequest(RequestKind.SCORE, "m", 50, 200, 0, output, extent=extent)
    bound = PAIR_UNITS.bound_pusd(price, asked, 0)
    for tokens in (PAIR_UNITS.estimate(asked, 0), PAIR_UNITS.most(asked), TokenCounts(input=200)):
        assert cost_pusd(tokens, price) <= bound


def test_an_instruction_is_read_with_each_pair() -> None:
    members = decode_members(b'{"model": "m", "a": "xx", "b": 7, "instruct": "0123", "c": true}')
    assert bytes_beside(members, frozenset(("model", "a"))) == len('"0123"')
