"""Prices of `genai-prices` as terms: by its own types, and over what the book already knows."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from genai_prices.types import (
    ClauseEquals,
    ClauseOr,
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    PriceVariant,
    Provider,
    StartDateConstraint,
    Tier,
    TieredPrices,
    TimeOfDateConstraint,
)
from msgspec.structs import replace

from ledger.prices.book import Price
from ledger.prices.genaimap import seed_from_genai, stated_on
from ledger.prices.rates import PriceTerms, TierRates, rates_from

AT_US = int(datetime(2026, 11, 21, tzinfo=UTC).timestamp()) * 1_000_000
URL = "https://vendor/prices"


def usd(**prices) -> ModelPrice:
    return ModelPrice(**{key: value if isinstance(value, TieredPrices) else Decimal(value)
                         for key, value in prices.items()})  # fmt: skip


def model(prices=None, **fields) -> ModelInfo:
    prices = usd(input_mtok="2", output_mtok="8") if prices is None else prices
    return ModelInfo(**{"id": "gpt-x", "match": ClauseEquals(equals="gpt-x"), "prices": prices,
                        **fields})  # fmt: skip


def seed(info: ModelInfo, *known: Price, provider="openai"):
    owner = Provider(id=provider, name="", api_pattern="", pricing_urls=[URL], models=[info])
    by_name = {price.name: price for price in known}
    return seed_from_genai([owner], by_name, at_us=AT_US, read_on="2026-10-21")


def known(name="openai/gpt-x", schedules=(), **kinds) -> Price:
    terms = PriceTerms(rates_from({"input": 2 * 10**6, "output": 8 * 10**6, **kinds}), schedules)
    return Price(1, name, "litellm", 0, terms)


def rates(**kinds):
    return rates_from({"input": 2 * 10**6, "output": 8 * 10**6, **kinds})


def only(made) -> PriceTerms:
    (draft,) = made.drafts
    return draft.terms


def test_kinds_source_and_date():
    made = seed(
        model(
            usd(input_mtok="2", cache_read_mtok="0.5", cache_write_mtok="2.5",
                cache_write_1h_mtok="4", output_mtok="8", output_reasoning_mtok="9",
                input_audio_mtok="30", output_audio_mtok="60", requests_kcount="5",
                web_searches_kcount="10"),
            price_comments="Verified on 2026-11-02, and on 2026-10-30.",
        )
    )  # fmt: skip
    (draft,) = made.drafts
    assert draft.terms == PriceTerms(
        rates(cached=500_000, cache_write=2_500_000, cache_write_1h=4 * 10**6, reasoning=9 * 10**6,
              audio_input=30 * 10**6, audio_output=60 * 10**6),
        request_pusd=5 * 10**9, unread=("web_searches_kcount",),
    )  # fmt: skip
    assert (draft.name, draft.source, draft.source_date) == ("openai/gpt-x", URL, "2026-11-02")


def test_thresholds_and_tiers():
    long = TieredPrices(base=Decimal(2), tiers=[Tier(start=200_000, price=Decimal(4))])
    half = TieredPrices(base=Decimal(1), tiers=[Tier(start=200_000, price=Decimal(2))])
    variants = [
        PriceVariant(when={"processing": "batch"}, prices=usd(input_mtok=half, output_mtok="4")),
        PriceVariant(when={"service_tier": "priority"}, prices=usd(input_mtok="5")),
        PriceVariant(when={"route": "eu"}, prices=usd(input_mtok="7")),
    ]
    made = only(seed(model(usd(input_mtok=long, output_mtok="8"), price_variants=variants)))
    assert made.schedules == (
        TierRates("batch", 0, rates(input=10**6, output=4 * 10**6)),
        TierRates("batch", 200_000, rates(output=4 * 10**6)),
        TierRates("priority", 0, rates(input=5 * 10**6)),
        TierRates("priority", 200_000, rates(input=5 * 10**6)),
        TierRates("standard", 200_000, rates(input=4 * 10**6)),
    )


def test_what_is_not_stated_stays_as_it_was():
    flex = TierRates("flex", 0, rates(input=10**6))
    before = known(schedules=(flex,), audio_input=40 * 10**6, cached=10**6)
    made = only(seed(model(usd(input_mtok="3", output_mtok="8")), before))
    assert made == PriceTerms(rates(input=3 * 10**6, audio_input=40 * 10**6, cached=10**6), (flex,))
    assert only(seed(model(), before)) == before.terms


def test_charges_that_are_not_read_stay_named_over_a_known_price():
    searched = model(usd(input_mtok="3", output_mtok="8", web_searches_kcount="10"))
    assert only(seed(searched)).unread == ("web_searches_kcount",)
    assert only(seed(searched, known())).unread == ("web_searches_kcount",)
    terms = replace(known().terms, unread=("web_searches_kcount", "a_cost"))
    before = replace(known(), terms=terms)
    assert only(seed(searched, before)).unread == ("web_searches_kcount", "a_cost")
    assert only(seed(model(), before)).unread == terms.unread


def test_a_threshold_that_includes_its_own_count_is_told_as_the_book_tells_it():
    above = TieredPrices(base=Decimal(2), tiers=[Tier(start=199_999, price=Decimal(4))])
    long = TierRates("standard", 200_000, rates(input=4 * 10**6))
    before = Price(1, "xai/gpt-x", "litellm", 0, PriceTerms(rates(), (long,), inclusive=True))
    assert only(seed(model(usd(input_mtok=above, output_mtok="8")), before, provider="x-ai")) == (
        before.terms
    )


def test_the_price_of_the_day_counts():
    later = StartDateConstraint(start_date=date(2026, 11, 22))
    begun = StartDateConstraint(start_date=date(2026, 11, 21))
    prices = [
        ConditionalPrice(prices=usd(input_mtok="1", output_mtok="8")),
        ConditionalPrice(begun, prices=usd(input_mtok="2", output_mtok="8")),
        ConditionalPrice(later, prices=usd(input_mtok="3", output_mtok="8")),
    ]
    batch = PriceVariant(when={"processing": "batch"}, prices=usd(input_mtok="1"), constraint=later)
    assert only(seed(model(prices, price_variants=[batch]))) == PriceTerms(rates())


def test_exact_aliases_that_the_book_has_are_priced_too():
    match = ClauseOr(or_=[ClauseEquals(equals="gpt-x-2026"), ClauseEquals(equals="gpt-other")])
    made = seed(model(match=match), known("openai/GPT-X-2026"))
    assert [draft.name for draft in made.drafts] == ["openai/gpt-x", "openai/GPT-X-2026"]


NIGHT = TimeOfDateConstraint(start_time=time(16, tzinfo=UTC), end_time=time(23, tzinfo=UTC))


@pytest.mark.parametrize(
    ("prices", "why"),
    [
        (usd(output_mtok="8"), "the input has no price"),
        (usd(input_mtok="0", output_mtok="0"), "the input has no price"),
        (usd(input_mtok="2"), "the output has no price"),
        (usd(input_mtok="0.0000001", output_mtok="8"), "finer than a pico-USD"),
        ([ConditionalPrice(NIGHT, prices=usd(input_mtok="2"))], "depends on the time of day"),
    ],
)
def test_what_cannot_be_used_is_listed(prices, why):
    made = seed(model(prices))
    assert made.drafts == ()
    assert why in made.refused[0].text


def test_an_embedding_has_no_output_to_price():
    prices = usd(input_mtok="2")
    assert only(seed(model(prices), known(output=0))).rates.output == 0


def test_providers_that_the_book_does_not_name_are_left_out():
    assert seed(model(), provider="cursor").drafts == ()


def test_the_day_of_the_data_is_the_last_past_one_that_it_speaks_of():
    comments = ["Read on 2026-11-02.", None, "Retires on 2027-01-01; was 2026-10-30."]
    models = [model(price_comments=text) for text in comments]
    owner = Provider(id="openai", name="", api_pattern="", models=models)
    assert stated_on([owner], AT_US) == "2026-11-02"
    assert stated_on([], AT_US) is None
