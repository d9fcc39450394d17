"""A person's word holds for one request and half a minute; whatever is changed of it, does not."""

import pytest

from ledger.identity.vouchers import (
    AHEAD_US,
    LASTS_US,
    InvalidVoucher,
    VouchedRequest,
    VouchedUser,
    digest,
    verify_voucher,
    vouch,
)

KEY, NOW_US, BODY = b"k" * 32, 10**15, b'{"policies": "x"}'
ASKED = VouchedRequest("POST", "/v1/organization/policies/apply?a=1")
WORD = vouch(KEY, "ada@example.com", ASKED, BODY, NOW_US)


@pytest.mark.parametrize("name", ["ada@example.com", "\u00e5sa@example.com", "a.b\n", None])
def test_who_is_vouched_for_is_heard(name) -> None:
    word = vouch(KEY, name, ASKED, BODY, NOW_US)
    assert verify_voucher(KEY, word, ASKED, NOW_US) == VouchedUser(name, digest(BODY))
    assert word.isascii()


@pytest.mark.parametrize(
    ("key", "asked"),
    [
        (b"x" * 32, ASKED),
        (KEY, VouchedRequest("GET", ASKED.target)),
        (KEY, VouchedRequest("POST", "/v1/organization/policies/rollback")),
        (KEY, VouchedRequest("POST", ASKED.target + "&a=2")),
        (KEY, VouchedRequest("POST\n" + ASKED.target, "")),
    ],
)
def test_it_is_of_no_use_for_another_request_or_gateway(key, asked) -> None:
    with pytest.raises(InvalidVoucher, match="not made for this request"):
        verify_voucher(key, WORD, asked, NOW_US)


@pytest.mark.parametrize("place", range(1, 5))
def test_no_part_can_be_changed(place) -> None:
    other = vouch(KEY, "eve@example.com", ASKED, b"{}", NOW_US + 1).split(".")
    parts = WORD.split(".")
    parts[place] = other[place]
    with pytest.raises(InvalidVoucher, match="not made for this request"):
        verify_voucher(KEY, ".".join(parts), ASKED, NOW_US)


@pytest.mark.parametrize("at_us", [NOW_US + LASTS_US + 1, NOW_US - AHEAD_US - 1])
def test_it_is_over_soon_and_no_clock_runs_far_ahead(at_us) -> None:
    with pytest.raises(InvalidVoucher, match="it is over"):
        verify_voucher(KEY, WORD, ASKED, at_us)


@pytest.mark.parametrize("at_us", [NOW_US + LASTS_US, NOW_US - AHEAD_US])
def test_control_until_then_it_holds(at_us) -> None:
    assert verify_voucher(KEY, WORD, ASKED, at_us).name == "ada@example.com"


@pytest.mark.parametrize(
    "word", ["", "v1", "v2" + WORD[2:], WORD + ".x", WORD + "\u00e9", "v1...." + "x" * 3_000]
)
def test_what_is_no_such_word_is_none(word) -> None:
    with pytest.raises(InvalidVoucher, match="not of the form"):
        verify_voucher(KEY, word, ASKED, NOW_US)
