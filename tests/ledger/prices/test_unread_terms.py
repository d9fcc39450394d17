"""Charges that no term says are found whatever they are called; whom they concern is told."""

from decimal import Decimal

import pytest

from ledger.prices.unread_terms import (
    MOST_SEARCHES,
    SEARCH_FEE,
    SEARCH_OF_EVERY_REQUEST,
    FeeTrigger,
    answered,
    charged_terms,
    doubtful_terms,
    missing_limits,
    trigger_of,
    unlimited_terms,
    unread_in_row,
)
from router.types import Feature

READ = {"input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost"}
ROW = {
    "input_cost_per_token": Decimal("1E-6"), "output_cost_per_token": Decimal("2E-6"),
    "cache_read_input_token_cost": Decimal("1E-7"), "max_tokens": 7, "rpm": 5,
    "supported_output_modalities": ["text", "image"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "trigger"),
    [
        (SEARCH_FEE, FeeTrigger.HOSTED_TOOLS),
        ("google_maps_grounding_cost_per_query", FeeTrigger.HOSTED_TOOLS),
        ("web_search_cost_per_1k_calls", FeeTrigger.HOSTED_TOOLS),
        ("code_interpreter_cost_per_session", FeeTrigger.HOSTED_TOOLS),
        ("file_search_cost_per_gb_per_day", FeeTrigger.HOSTED_TOOLS),
        ("input_cost_per_image", FeeTrigger.MEDIA),
        ("input_cost_per_image_token_batches", FeeTrigger.MEDIA),
        ("input_cost_per_video_per_second_above_128k_tokens", FeeTrigger.MEDIA),
        ("input_cost_per_audio_per_second", FeeTrigger.MEDIA),
        ("cache_read_input_audio_token_cost", FeeTrigger.SOUND),
        ("output_cost_per_image_token", FeeTrigger.ANY),
        ("output_cost_per_video_token", FeeTrigger.ANY),
        ("ocr_cost_per_page", FeeTrigger.ANY),
        ("input_cost_per_page", FeeTrigger.ANY),
        (SEARCH_OF_EVERY_REQUEST, FeeTrigger.ANY),
        ("priority_surcharge_of_2027", FeeTrigger.ANY),
        (MOST_SEARCHES, FeeTrigger.LIMIT),
        ("provider_specific_entry", FeeTrigger.OPTION),
        ("off_peak_pricing", FeeTrigger.DISCOUNT),
    ],
)
def test_whom_a_charge_concerns(name, trigger):
    assert trigger_of(name) is trigger


def test_features_of_a_request_are_the_triggers_words():
    words = {feature.value for feature in Feature}
    assert {FeeTrigger.MEDIA.value, FeeTrigger.HOSTED_TOOLS.value} <= words
    assert not {FeeTrigger.ANY.value, FeeTrigger.SOUND.value, FeeTrigger.LIMIT.value} & words


NAMES = (SEARCH_FEE, "input_cost_per_image", "odd_cost", MOST_SEARCHES, "off_peak_pricing",
         "provider_specific_entry", "cache_read_input_audio_token_cost")  # fmt: skip


@pytest.mark.parametrize(
    ("features", "charged"),
    [
        ((), ["odd_cost"]),
        ([Feature.IMAGES], ["input_cost_per_image", "odd_cost"]),
        ([Feature.HOSTED_TOOLS, Feature.N], [SEARCH_FEE, "odd_cost"]),
        (["sound"], ["odd_cost", "cache_read_input_audio_token_cost"]),
    ],
)
def test_a_request_is_charged_what_it_asks_for(features, charged):
    assert charged_terms(NAMES, features) == tuple(charged)
    if "sound" not in features:
        limited = [name for name in NAMES if name in (*charged, MOST_SEARCHES)]
        assert unlimited_terms(NAMES, features) == tuple(limited)


def test_what_only_makes_cheaper_is_no_doubt():
    assert doubtful_terms(NAMES) == (*NAMES[:4], NAMES[6])


@pytest.mark.parametrize(
    ("stated", "left"),
    [
        ({"per_request": False, "searches": False}, NAMES),
        ({"per_request": True, "searches": False}, (*NAMES[1:3], *NAMES[4:])),
        ({"per_request": False, "searches": True}, (*NAMES[1:3], *NAMES[4:])),
    ],
)
def test_a_price_file_answers_searches(stated, left):
    assert answered(NAMES, **stated) == left


@pytest.mark.parametrize(
    ("fields", "unread"),
    [
        ({}, []),
        ({"output_cost_per_image": Decimal("3E-5")}, ["output_cost_per_image"]),
        ({"output_cost_per_video_token": Decimal("3E-5")}, []),  # of a model without videos
        ({"input_cost_per_image_token": Decimal("1E-6")}, []),
        ({"citation_cost_per_token": Decimal("1E-6")}, []),
        ({"citation_cost_per_token": Decimal("2E-6")}, ["citation_cost_per_token"]),
        ({"input_cost_per_token_cache_hit": Decimal("1E-7")}, []),
        ({"input_cost_per_character": Decimal("1E-6")}, []),
        ({"input_dbu_cost_per_token": Decimal("1E-6")}, []),
        ({"input_cost_per_token_decisions": Decimal("1E-6")}, []),
        ({SEARCH_FEE: {"low": Decimal("0.01"), "high": 0}}, [SEARCH_FEE]),
        ({SEARCH_FEE: {"low": 0, "high": Decimal(0)}}, []),
        ({SEARCH_FEE: Decimal("0.01")}, [SEARCH_FEE]),
        ({"code_interpreter_cost_per_session": Decimal("0.03")},
         ["code_interpreter_cost_per_session"]),
        ({"input_cost_per_image": 0, "input_cost_per_page": None, "free_cost": False}, []),
        ({"session_cost": "0.01", "cost_tier": "low"}, ["session_cost"]),
        ({"page_prices": [{"usd": 0}, {"usd": Decimal("0.1")}]}, ["page_prices"]),
        ({"setup_fee": 1, "coffee": 1}, ["setup_fee"]),
        ({"provider_specific_entry": {"us": Decimal("1.1")}}, []),
        ({"provider_specific_entry": {"us": 1, "fast": 6}}, ["provider_specific_entry"]),
        ({"provider_specific_entry": {"schema": "titan_v2"}}, []),
        ({"off_peak_pricing": {"windows": []}}, ["off_peak_pricing"]),
    ],
)  # fmt: skip
def test_what_states_a_charge_and_is_not_read(fields, unread):
    assert list(unread_in_row(ROW | fields, READ)) == unread


@pytest.mark.parametrize(
    ("names", "terms", "left"),
    [
        ((), (5, 0, 1), (MOST_SEARCHES,)),
        (("a",), (5, 0, 1), ("a", MOST_SEARCHES)),
        ((MOST_SEARCHES,), (5, 0, 1), (MOST_SEARCHES,)),
        ((), (5, 30, 1), ()),
        ((), (0, 0, 1), ()),
        ((), (5, 0, 0), ()),
    ],
)
def test_a_price_of_a_search_needs_a_limit(names, terms, left) -> None:
    search, limit, output = terms
    found = missing_limits(names, search_pusd=search, searches_limit=limit, output_pusd=output)
    assert found == left
