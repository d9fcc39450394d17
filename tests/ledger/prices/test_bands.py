"""A price in the wrong unit is doubted, whatever else is known; what markets really do is not."""

import pytest
from msgspec.structs import replace

from ledger.prices.bands import PriceBands
from ledger.prices.book import Price, PriceBook
from ledger.prices.bundled import bundled_seed
from ledger.prices.drafts import diff
from ledger.prices.rates import PriceTerms, TierRates, TokenRates, rates_from

NAME = "openai/gpt-4o"
RIGHT = {"input": 3_000_000, "output": 10_000_000}
NOW_US = 1000


def price(version: int = 99, times: float = 1, book: str = "deal.csv", **fields) -> Price:
    rates = rates_from({kind: int(pusd * times) for kind, pusd in RIGHT.items()})
    terms = PriceTerms(rates, fields.pop("schedules", ()))
    return Price(**{"version": version, "name": NAME, "book": book, "effective_from_us": 0,
                    "terms": terms, **fields})  # fmt: skip


def doubt(judged: Price, *known: Price) -> str | None:
    return PriceBands(PriceBook(known), NOW_US).doubt(judged)


LISTED = price(7, book="litellm")
BEFORE = price(8)
HOST = price(9, book="litellm", name="azure/gpt-4o-2024-08-06")


@pytest.mark.parametrize("known", [(LISTED,), (BEFORE,), (HOST,), (LISTED, BEFORE, HOST)])
@pytest.mark.parametrize(
    ("times", "said"),
    [
        (1e-3, "1,000 times less than"), (1e-6, "1,000,000 times less than"),
        (1e3, "1,000 times more than"), (1e6, "1,000,000 times more than"),
    ],
)  # fmt: skip
def test_a_wrong_unit_is_named(known, times, said):
    words = doubt(price(times=times), *known)
    unit = "1K tokens" if times in (1e-3, 1e3) else "token"
    wrong, right = (unit, "1M tokens") if times < 1 else ("1M tokens", unit)
    assert words.startswith(f"input, output: {said} ")
    assert f"a price per {wrong} where one per {right} is meant?" in words


@pytest.mark.parametrize("times", [0.2, 0.8, 1, 1.1, 5])
def test_discounts_and_increases_are_no_doubt(times):
    assert doubt(price(times=times), LISTED) is None
    assert doubt(price(times=times), BEFORE) is None
    assert doubt(price(times=times), HOST) is None
    assert doubt(price(times=times)) is None


def test_the_words_say_what_is_compared_with_what():
    assert doubt(price(times=1e-3), LISTED) == (
        "input, output: 1,000 times less than version 7 of litellm "
        "(0.003 for 3: a price per 1K tokens where one per 1M tokens is meant?)"
    )
    assert doubt(price(times=0.05), LISTED) == (
        "input, output: 20 times less than version 7 of litellm (0.15 for 3)"
    )
    assert "than the model costs as azure/gpt-4o-2024-08-06 (" in doubt(price(times=1e3), HOST)
    second = replace(HOST, version=10, name="other/gpt-4o")
    assert "than other hosts of the model (" in doubt(price(times=1e3), HOST, second)
    genai = replace(LISTED, version=11, book="genai-prices")
    assert "than other books (" in doubt(price(times=1e3), LISTED, genai)


def test_where_nothing_is_known_any_models_price_is_the_measure():
    assert "output: 400 times more than what any" in doubt(price(times=24_000, name="acme/own"))
    low = doubt(price(times=1e-4, name="acme/own"))
    assert "input: 13 times less than what any model costs" in low
    assert "a price per 1K tokens where one per 1M tokens is meant?" in low
    assert doubt(price(times=1e-6, name="acme/own")) is not None


def test_one_kind_or_tier_alone_is_told():
    odd = replace(price().terms.rates, output=10_000)
    words = doubt(replace(price(), terms=PriceTerms(replace(odd, reasoning=10_000_000))), LISTED)
    assert words.startswith("output: 1,000 times less")
    batch = TierRates("batch", 0, rates_from({"input": 1_500, "output": 5_000_000}))
    long = TierRates(
        "standard", 200_000, rates_from({"input": 6_000_000_000, "output": 15_000_000})
    )
    words = doubt(price(schedules=(batch, long)), LISTED)
    assert "batch input: 2,000 times less than" in words
    assert "input >200000: 2,000 times more than" in words


def test_what_is_charged_beside_tokens():
    def sound(pusd: int, version: int, book: str) -> Price:
        free = PriceTerms(rates_from({"input": 0, "output": 0}), second_pusd=pusd)
        return Price(version, "openai/whisper-1", book, 0, free)

    words = doubt(sound(6_000_000_000, 2, "deal.csv"), sound(100_000_000, 1, "litellm"))
    assert words == (
        "second: 60 times more than version 1 of litellm "
        "(0.006 for 0.0001: a price per second where one per minute is meant?)"
    )


def test_free_is_doubted_where_the_same_name_costs_something():
    assert doubt(price(times=0), LISTED).startswith("input, output: free, unlike version 7 of")
    assert doubt(price(times=0), HOST) is None  # some hosts give a model away
    assert doubt(price(), price(7, 0, book="litellm")) is None


def test_who_puts_a_mistake_right_is_not_doubted_and_who_repeats_it_is():
    wrong = price(9, times=1e-3)
    assert doubt(price(10), BEFORE, wrong) is None
    assert doubt(price(10), wrong) is not None  # which of the two is wrong cannot be told
    assert doubt(price(10, times=1e-3), LISTED, BEFORE, wrong) is not None


def test_simulated_and_withdrawn_prices_are_not_judged():
    assert doubt(price(times=1e3, simulated=True), LISTED) is None
    assert doubt(price(times=1e3, withdrawn=True), LISTED) is None
    assert "what any model" in doubt(price(times=1e5), replace(HOST, simulated=True))


@pytest.fixture(scope="module")
def market() -> tuple[PriceBands, list[Price]]:
    prices = diff((), bundled_seed().drafts, at_us=NOW_US).prices(1)
    return PriceBands(PriceBook(prices), NOW_US), prices


def test_the_bundled_map_is_hardly_doubted(market):
    bands, prices = market
    odd = [price.name for price in prices if bands.doubt(price)]
    assert len(prices) > 3000
    assert len(odd) < 15
    assert "watsonx/core42/jais-13b-chat" in odd  # 500 and 2,000 USD per 1M tokens: it is real


@pytest.mark.parametrize("factor", [1_000, 1_000_000])
@pytest.mark.parametrize("up", [False, True])
def test_every_price_of_the_map_in_a_wrong_unit_is_doubted(market, factor, up):
    bands, prices = market
    missed = [price.name for price in prices if (wrong := _wrong(price, factor, up=up))
              and bands.doubt(wrong) is None]  # fmt: skip
    assert missed == []


def _wrong(right: Price, factor: int, *, up: bool) -> Price | None:
    rates = right.terms.rates
    kinds = {kind: getattr(rates, kind) for kind in TokenRates.__struct_fields__}
    moved = {kind: pusd * factor if up else pusd // factor for kind, pusd in kinds.items()}
    if not (rates.input or rates.output):
        return None
    terms = replace(right.terms, rates=TokenRates(**moved), schedules=())
    return replace(right, version=10**6, book="deal.csv", rank=9, terms=terms)
