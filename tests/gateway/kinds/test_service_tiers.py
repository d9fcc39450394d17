"""The tier that a request asks for, in the words of price lists."""

import json

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds.service_tiers import asked_tier


@pytest.mark.parametrize(
    ("stated", "tier"),
    [
        (None, ""),
        ("auto", ""),
        ("default", ""),
        ("standard_only", ""),
        ("flex", "flex"),
        ("Priority", "priority"),
        ("fast", "priority"),
        ("scale", "scale"),
        ("a\nb", "ab"),
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
