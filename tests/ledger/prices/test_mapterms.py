from decimal import Decimal

import pytest

from ledger.prices.mapterms import other_charges, terms_of
from ledger.prices.rates import STANDARD, PriceError, TierRates, rates_from

BASE = {
    "litellm_provider": "openai",
    "mode": "chat",
    "input_cost_per_token": Decimal("0.000003"),
    "output_cost_per_token": Decimal("0.000015"),
}


def terms(**fields):
    return terms_of(BASE | fields)


def rates(**kinds):
    return rates_from({"input": 3_000_000, "output": 15_000_000} | kinds)


def test_plain_rates():
    found = terms()
    assert (found.rates, found.schedules) == (rates(), ())


def test_every_kind_is_read():
    found = terms(
        cache_read_input_token_cost=Decimal("3E-7"),
        cache_creation_input_token_cost=Decimal("3.75E-6"),
        cache_creation_input_token_cost_above_1hr=Decimal("6E-6"),
        output_cost_per_reasoning_token=Decimal("2E-5"),
        input_cost_per_audio_token=Decimal("4E-5"),
        output_cost_per_audio_token=Decimal("8E-5"),
        input_cost_per_request=Decimal("0.005"),
    )
    assert found.rates == rates(
        cached=300_000, cache_write=3_750_000, cache_write_1h=6_000_000,
        reasoning=20_000_000, audio_input=40_000_000, audio_output=80_000_000,
    )  # fmt: skip
    assert found.request_pusd == 5_000_000_000


def test_tiers_and_thresholds():
    found = terms(
        cache_read_input_token_cost=Decimal("3E-7"),
        input_cost_per_token_above_200k_tokens=Decimal("6E-6"),
        input_cost_per_token_batches=Decimal("1.5E-6"),
        output_cost_per_token_priority=Decimal("3E-5"),
        output_cost_per_token_above_200k_tokens_priority=Decimal("6E-5"),
    )
    cached = 300_000
    assert found.schedules == (
        TierRates("batch", 0, rates(input=1_500_000, cached=cached)),
        TierRates("batch", 200_000, rates(input=3_000_000, cached=cached)),  # half, as below it
        TierRates("priority", 0, rates(output=30_000_000, cached=cached)),
        TierRates("priority", 200_000, rates(input=6_000_000, output=60_000_000, cached=cached)),
        TierRates(STANDARD, 200_000, rates(input=6_000_000, cached=cached)),
    )


def test_a_discount_goes_on_above_a_threshold_and_for_an_hours_cache():
    found = terms(
        cache_creation_input_token_cost=Decimal("3.75E-6"),
        cache_creation_input_token_cost_above_1hr=Decimal("6E-6"),
        cache_creation_input_token_cost_batches=Decimal("1.875E-6"),
        input_cost_per_token_batches=Decimal("1.5E-6"),
        input_cost_per_token_priority=Decimal("6E-6"),
        input_cost_per_token_above_200k_tokens=Decimal("6E-6"),
    )
    by_place = {
        (schedule.tier, schedule.above_tokens): schedule.rates for schedule in found.schedules
    }
    assert by_place["batch", 0].cache_write_1h == 3_000_000
    assert by_place["batch", 200_000].input == 3_000_000
    assert by_place["priority", 200_000].input == 6_000_000  # dearer below is no rule above


def test_a_stated_output_price_is_also_that_of_reasoning():
    found = terms(
        output_cost_per_reasoning_token=Decimal("2E-5"),
        output_cost_per_token_above_200k_tokens=Decimal("3E-5"),
        input_cost_per_token_above_272k_tokens=Decimal("6E-6"),
    )
    assert [schedule.rates.reasoning for schedule in found.schedules] == [30_000_000, 30_000_000]


def test_ranges_state_all_their_rates():
    found = terms(
        tiered_pricing=[
            {"range": [0, Decimal("32000.0")], "input_cost_per_token": Decimal("1E-6")},
            {
                "range": [Decimal("32000.0"), 128_000],
                "input_cost_per_token": Decimal("2E-6"),
                "output_cost_per_token": Decimal("9E-6"),
            },
        ],
    )
    assert found.rates == rates(input=1_000_000)
    assert found.schedules == (
        TierRates(STANDARD, 32_000, rates(input=2_000_000, output=9_000_000)),
    )


def test_ranges_without_an_output_price_of_the_model():
    row = {
        "mode": "chat",
        "tiered_pricing": [
            {
                "range": [0, 10],
                "input_cost_per_token": Decimal("1E-6"),
                "output_cost_per_token": Decimal("2E-6"),
            }
        ],
    }
    assert terms_of(row).rates == rates_from({"input": 1_000_000, "output": 2_000_000})


def test_embeddings_have_no_output():
    found = terms(mode="embedding", output_cost_per_token=0)
    assert (found.rates.input, found.rates.output) == (3_000_000, 0)


def test_a_free_cache_is_a_cache_without_a_price():
    found = terms(cache_creation_input_token_cost=Decimal("0.0"), cache_read_input_token_cost=0)
    assert (found.rates.cache_write, found.rates.cached) == (3_000_000, 3_000_000)


def test_float_noise_is_rounded():
    found = terms(input_cost_per_token=Decimal("0.0000016000000000000000001"))
    assert found.rates.input == 1_600_000


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"input_cost_per_token": Decimal("1.5E-13")}, "finer"),
        ({"input_cost_per_token": Decimal("-1E-6")}, "which is not a price"),
        ({"input_cost_per_token": "3e-06"}, "which is not a price"),
        ({"input_cost_per_token": True}, "which is not a price"),
        ({"output_cost_per_token": 0}, "output has no price"),
        ({"output_cost_per_token": None}, "output has no price"),
        ({"input_cost_per_token": 0}, "must be priced"),
        ({"input_cost_per_token": None}, "must be priced"),
    ],
)
def test_what_is_not_exact_complete_and_above_zero_is_refused(fields, why):
    with pytest.raises(PriceError, match=why):
        terms(**fields)


def test_a_provider_whose_requests_are_searches_charges_the_dearest_depth():
    depths = {"search_context_size_low": Decimal("0.005"), "search_context_size_high": 1}
    search = {"search_context_cost_per_query": depths}
    assert terms(**search, litellm_provider="perplexity").request_pusd == 10**12
    assert terms(**search).request_pusd == 0


@pytest.mark.parametrize(
    "name",
    [
        "openai/gpt-4o-search-preview", "openai/gpt-4o-mini-search-preview-2025-03-11",
        "openai/gpt-5-search-api", "azure/GPT-5-search-api-2025-10-14", "x/perplexity/sonar-pro",
        "aihubmix/gemini-3-flash-preview-search", "x/m:online", "x/search-m", "x/m_grounded-2",
        "x/pplx-7b-online", "x/m.websearch",
    ],
)  # fmt: skip
def test_a_model_that_always_searches_has_the_search_in_its_fee_or_is_partly_known(name):
    depths = {"search_context_size_low": Decimal("0.01"), "search_context_size_high": 0}
    search = {"search_context_cost_per_query": depths}
    read = terms_of(BASE | search, name)
    assert (read.request_pusd, read.search_pusd, read.unread) == (10**10, 0, ())
    flat = terms_of(BASE | {"search_context_cost_per_query": Decimal("0.01")}, name)
    assert flat == read
    unsaid = terms_of(BASE, name)
    assert (unsaid.request_pusd, unsaid.unread) == (0, ("search_of_every_request",))
    stated = terms_of(BASE | {"input_cost_per_request": Decimal("0.005")}, name)
    assert (stated.request_pusd, stated.unread) == (5 * 10**9, ())


@pytest.mark.parametrize(
    "name",
    [
        "openai/gpt-4o",
        "gemini/deep-research-preview",
        "x/sonar-small-chat",
        "x/searcher",
        "x/research-online/m",
        "x/firesearch-ocr",
    ],
)
def test_a_model_that_may_search_has_its_fee_named(name):
    search = {"search_context_cost_per_query": {"search_context_size_low": Decimal("0.01")}}
    read = terms_of(BASE | search, name)
    assert (read.request_pusd, read.unread) == (0, ("search_context_cost_per_query",))


@pytest.mark.parametrize("mode", ["embedding", "rerank", "search"])
def test_what_does_not_write_searches_nothing(mode):
    row = BASE | {"mode": mode, "search_context_cost_per_query": Decimal("0.01")}
    assert terms_of(row, "openai/text-search-ada-doc").request_pusd == 0


def test_searches_that_are_counted_have_a_price_of_their_own():
    row = BASE | {
        "litellm_provider": "perplexity",
        "citation_cost_per_token": BASE["input_cost_per_token"],
        "search_context_cost_per_query": {"search_context_size_low": Decimal("0.005")},
    }
    read = terms_of(row, "perplexity/sonar-deep-research")
    assert (read.request_pusd, read.search_pusd) == (0, 5 * 10**9)
    assert read.unread == ("max_searches",)


def test_charges_inside_a_range_are_named_too():
    step = {"range": [0, 10], "input_cost_per_token": Decimal("1E-6"), "page_cost": 1}
    assert terms(tiered_pricing=[step]).unread == ("page_cost",)


def test_the_higher_rates_begin_at_xais_threshold_and_above_the_others():
    assert terms(litellm_provider="xai").inclusive
    assert not terms().inclusive


def test_other_charges_are_named():
    row = BASE | {
        "search_context_cost_per_query": {"low": Decimal("0.01")},
        "output_cost_per_image": Decimal("0.1"),
        "input_cost_per_second": 0,
        "off_peak_pricing": {"windows": []},
        "cache_read_input_token_cost_flex": Decimal("1E-7"),
    }
    assert list(other_charges(row)) == [
        "search_context_cost_per_query",
        "output_cost_per_image",
        "off_peak_pricing",
    ]


RERANK = {"litellm_provider": "cohere", "mode": "rerank", "output_cost_per_token": 0}
SOUND = {"litellm_provider": "openai", "mode": "audio_transcription"}


@pytest.mark.parametrize(
    ("row", "search", "second", "listed"),
    [
        (RERANK | {"input_cost_per_query": Decimal("0.002")}, 2_000_000_000, 0, (0, 0, 0)),
        (RERANK | {"input_cost_per_token": Decimal("5E-8")}, 0, 0, (50_000, 50_000, 0)),
        (
            SOUND | {"input_cost_per_second": Decimal("0.0001"), "output_cost_per_second": 0},
            0, 100_000_000, (0, 0, 0),
        ),
        (
            # One charge under both names, as of whisper-1: it is not charged twice.
            SOUND | dict.fromkeys(
                ("input_cost_per_second", "output_cost_per_second"), Decimal("0.0001")
            ),
            0, 100_000_000, (0, 0, 0),
        ),
        (
            SOUND | {
                "input_cost_per_audio_token": Decimal("2E-6"),
                "output_cost_per_token": Decimal("1.2E-5"),
            },
            0, 0, (2_000_000, 2_000_000, 12_000_000),
        ),
    ],
)  # fmt: skip
def test_rankings_and_sound(row, search, second, listed):
    found = terms_of(row)
    assert (found.search_pusd, found.second_pusd) == (search, second)
    rates = found.rates
    assert (rates.input, rates.audio_input, rates.output) == listed
    assert list(other_charges(row)) == []


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (RERANK | {"input_cost_per_token": 0, "input_cost_per_query": 0}, "neither tokens nor"),
        (SOUND | {"input_cost_per_second": Decimal("0.000283333333333")}, "finer than a pico-USD"),
        (SOUND | {"input_cost_per_token": Decimal("2E-6")}, "the output has no price"),
    ],
)
def test_what_nothing_is_charged_for_or_not_exactly_is_refused(row, why):
    with pytest.raises(PriceError, match=why):
        terms_of(row)


def test_a_chats_price_by_the_second_stays_another_charge():
    """Some rows of chat models list seconds of machines: of those nothing is known."""
    row = BASE | {"input_cost_per_second": Decimal("0.0001")}
    assert terms_of(row).second_pusd == 0
    assert list(other_charges(row)) == ["input_cost_per_second"]
