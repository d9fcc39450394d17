"""Signs fire where a number may be, and seldom anywhere else."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.contentcases import clean_prompts
from gateway.config.content_patterns import compile_signs
from gateway.content import number_signs
from gateway.content.sign_index import ends_in

SIGNS = {
    "cards": number_signs.CARD_SIGNS, "runs": (number_signs.RUN_SIGN,),
    "numbers": number_signs.NUMBER_SIGNS, "written": number_signs.WRITTEN_SIGNS,
    "accounts": number_signs.ACCOUNT_SIGNS, "telephones": number_signs.TELEPHONE_SIGNS,
    "persons": (number_signs.PERSON_SIGN,), "addresses": (number_signs.ADDRESS_SIGN,),
    "sixth": number_signs.SIXTH_SIGNS,
}  # fmt: skip
SIXTH = compile_signs(number_signs.SIXTH_SIGNS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cards", "4111111111111111"), ("cards", "4111-1111-1111-1111"), ("cards", "4 1 1 1 1 1 1"),
        ("runs", "41 111111-11111111"), ("numbers", "123-45-6789"), ("numbers", "180126955222380"),
        ("written", "12345678Z"), ("written", "131052-308T"),
        ("accounts", "DE89370400440532013000"), ("accounts", "DE89 3704 0044 0532"),
        ("accounts", "LU3 727 9XZ FS1 XO0"),
        ("telephones", "+49 30 1234567"), ("telephones", "phone 0301234567"),
        ("persons", "SSN:"), ("persons", "tax id"), ("addresses", "10.1.2.3"),
        ("accounts", "DE89/3704/0044/0532"), ("sixth", "fe80::1:2"), ("sixth", "::1:2:3"),
    ],
)  # fmt: skip
def test_a_sign_fires_where_a_number_begins_a_text_and_ends_it(name, text) -> None:
    assert ends_in(compile_signs(SIGNS[name]), f"\x1e{text}\x1f".encode())


@given(st.lists(st.integers(0, 0xFFFF), min_size=8, max_size=8), st.integers(0, 8), st.data())
def test_each_address_of_version_6_has_a_sign(groups, cut, data) -> None:
    """One with fewer than three colons is no find, and one that names few groups has two colons."""
    plain = [f"{group:x}" for group in groups]
    left = data.draw(st.integers(0, cut))
    texts = [":".join(plain), f"{':'.join(plain[:left])}::{':'.join(plain[left:cut])}"]
    for text in texts:
        if text.count(":") >= 5 and cut < 8:
            assert ends_in(SIXTH, f"\x1e{text}\x1f".encode()), text


@pytest.mark.parametrize("name", SIGNS)
def test_logs_have_few_signs(name) -> None:
    """A sign that fires costs a hundred times what it takes to pass a number over."""
    logs = "\n".join(list(clean_prompts(random.Random(1), ["x" * 5000], 400))[1::5]).encode()
    assert len(ends_in(compile_signs(SIGNS[name]), logs)) * 1024 < len(logs)
