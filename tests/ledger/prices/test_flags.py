"""Prices that nobody should trust without a look."""

import pytest

from ledger.prices.book import Price, PriceBook
from ledger.prices.flags import PriceDoubt, flags
from ledger.prices.rates import PriceTerms, rates_from

DAY_US = 86_400_000_000
NOW_US = 100 * DAY_US  # 1970-04-11
NAME = "openai/gpt-4o"
FRESH = {"source": "https://x", "source_date": "1970-03-01"}


def price(version: int, **fields) -> Price:
    rates = rates_from({"input": 100_000, "output": 200_000})
    return Price(**{"version": version, "name": NAME, "book": "litellm", "effective_from_us": 0,
                    "terms": PriceTerms(rates), **FRESH, **fields})  # fmt: skip


def found(*prices: Price, name: str = NAME, **options) -> list[tuple[int | None, PriceDoubt]]:
    return [
        (flag.version, flag.flag) for flag in flags(PriceBook(prices), [name], NOW_US, **options)
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({"source": None}, [PriceDoubt.NO_SOURCE]),
        ({"source_date": None}, [PriceDoubt.STALE]),
        ({"source_date": "1970-01-01"}, [PriceDoubt.STALE]),
        ({"retired_on": "1970-04-11"}, [PriceDoubt.RETIRED]),
        ({"retired_on": "1970-04-12"}, []),
        ({"effective_until_us": 130 * DAY_US}, [PriceDoubt.ENDS_SOON]),
        ({"effective_until_us": 132 * DAY_US}, []),
    ],
)
def test_doubts(fields, expected):
    assert found(price(7, **fields)) == [(7, flag) for flag in expected]


def test_a_name_without_a_price_is_missing():
    assert found(price(7), name="openai/other") == [(None, PriceDoubt.MISSING)]
    assert found(price(7, withdrawn=True)) == [(None, PriceDoubt.MISSING)]


def test_a_book_that_was_read_again_is_not_stale():
    old = price(1, source_date="1970-01-01")
    assert found(old, read_on={"litellm": "1970-04-01"}) == []
    assert found(old, read_on={"litellm": "1970-04-01"}, stale_after_days=9) == [
        (1, PriceDoubt.STALE)
    ]


def test_a_contract_that_ended_is_told_whether_or_not_a_list_takes_its_place():
    deal = {"book": "deal.csv", "rank": 5, "effective_until_us": 60 * DAY_US}
    assert found(price(1), price(2, **deal)) == [(2, PriceDoubt.EXPIRED)]
    assert found(price(2, **deal)) == [(None, PriceDoubt.MISSING), (2, PriceDoubt.EXPIRED)]
    (flag,) = flags(PriceBook([price(1), price(2, **deal)]), [NAME], NOW_US)
    assert flag.detail == "the price of deal.csv ended after 1970-03-01, since then litellm counts"


def test_a_contract_with_a_successor_or_under_a_dearer_one_is_no_doubt():
    deal = {"book": "deal.csv", "rank": 5}
    ended = price(2, **deal, effective_until_us=60 * DAY_US)
    assert found(price(1), ended, price(3, **deal, effective_from_us=60 * DAY_US)) == []
    assert found(price(1), ended, price(3, book="other.csv", rank=5)) == []
    assert found(price(1), price(4, **deal, effective_from_us=60 * DAY_US, withdrawn=True)) == []


def test_a_price_in_the_wrong_unit_is_implausible():
    deal = {
        "book": "deal.csv",
        "rank": 5,
        "terms": PriceTerms(rates_from({"input": 100, "output": 200})),
    }
    assert found(price(1), price(2, **deal)) == [(2, PriceDoubt.IMPLAUSIBLE)]
    (flag,) = flags(PriceBook([price(1), price(2, **deal)]), [NAME], NOW_US)
    assert flag.detail.startswith("input, output: 1,000 times less than version 1 of litellm")


def test_a_price_that_does_not_say_all_is_told_with_what_it_does_not_say():
    names = ("search_context_cost_per_query", "page_cost", "off_peak_pricing")
    book = PriceBook([price(7, terms=PriceTerms(price(7).terms.rates, unread=names))])
    (flag,) = flags(book, [NAME], NOW_US)
    assert (flag.version, flag.flag) == (7, PriceDoubt.PARTLY_KNOWN)
    assert flag.detail == (
        "not in its terms: search_context_cost_per_query (hosted tools), page_cost; "
        "state it in a price file, or `complete: true`"
    )
    assert found(price(7, terms=PriceTerms(price(7).terms.rates, unread=names[2:]))) == []
