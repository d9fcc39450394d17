"""The tier that a request asks for, in the words of price lists."""

import json

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds.service_tiers import TIER_LIMIT, asked_tier, told_tier


@pytest.mark.parametrize(
    ("stated", "tier"),
    [
        (None, ""),
        ("auto", "standard"),
        ("default", "standard"),
        ("standard_only", "standard"),
        ("flex", "flex"),
        ("Priority", "priority"),
        ("fast", "priority"),
        ("scale", "scale"),
        ("a\nb", "a?b"),
        ("flex\0", "flex?"),  # booked as `flex`, and no such word where it was sent
        ("fl\u200bex", "fl?ex"),
        ("x" * 99, "x" * 32),
        (7, "7"),
        (["flex"], '["flex"]'),
    ],
)
def test_a_tier_is_read_as_price_lists_name_it(stated, tier) -> None:
    body = json.dumps({"model": "m", "service_tier": stated}).encode()
    assert asked_tier(decode_members(body)) == tier


def test_an_escaped_word_is_the_same_word() -> None:
    assert asked_tier(decode_members(b'{"service_tier": "\\u0066lex"}')) == "flex"


def test_a_request_without_the_member_asks_for_nothing() -> None:
    assert asked_tier(decode_members(b"{}")) == ""


def test_a_number_that_nothing_can_hold_is_a_bad_request() -> None:
    with pytest.raises(RequestError) as caught:
        asked_tier(decode_members(b'{"service_tier": 1e999}'))
    assert (caught.value.row.status, caught.value.param) == (400, "service_tier")


@pytest.mark.parametrize(
    ("told", "usage", "tier", "at_place"),
    [
        (None, {}, None, None),
        ("flex", {"service_tier": "standard"}, "flex", "flex"),
        (None, {"service_tier": "standard", "inference_geo": "global"}, "standard", "standard"),
        (
            "default",
            {"inference_geo": "not_available", "speed": "standard"},
            "standard",
            "standard",
        ),
        ("default", {"inference_geo": "us"}, "us", "standard"),
        (None, {"speed": "fast"}, "priority", "priority"),
        ("default", {"speed": "fast", "inference_geo": "us"}, "priority-us", "priority"),
        ("flex", {"inference_geo": "us"}, "flex-us", "flex"),
        (None, {"inference_geo": "a\0b" + "x" * 99}, "a?b" + "x" * (TIER_LIMIT - 3), None),
        (None, {"inference_geo": 7, "speed": None}, None, None),
    ],
)
def test_speed_and_place_that_cost_more_are_a_tier(told, usage, tier, at_place) -> None:
    """Red before: Claude in the US was booked at the price of anywhere, without a mark."""
    assert told_tier(told, usage, regional=False) == tier
    assert told_tier(told, usage, regional=True) == at_place
