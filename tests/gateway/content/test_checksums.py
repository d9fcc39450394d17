"""Each check digit finds every wrong digit, and is met by numbers that issuers publish."""

import pytest

from gateway.content.checksums import (
    IBAN_LENGTHS,
    is_ean,
    is_iban,
    is_luhn,
    is_mod_11_2,
    is_mod_11_10,
    is_verhoeff,
    weighted,
)

PUBLISHED = (
    (is_luhn, "4111111111111111"), (is_luhn, "378282246310005"), (is_luhn, "6011111111111117"),
    (is_iban, "DE89370400440532013000"), (is_iban, "GB82WEST12345698765432"),
    (is_mod_11_10, "86095742719"), (is_mod_11_2, "11010519491231002X"), (is_verhoeff, "2363"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("check", "number"), PUBLISHED, ids=lambda value: getattr(value, "__name__", value)
)
def test_a_published_number_is_right_and_each_other_digit_wrong(check, number) -> None:
    assert check(number)
    for place, digit in enumerate(number):
        if digit.isdigit():
            other = str((int(digit) + 1) % 10)
            assert not check(number[:place] + other + number[place + 1 :])


def test_the_length_of_an_account_number_is_its_country_s() -> None:
    assert IBAN_LENGTHS["DE"] == len("DE89370400440532013000")
    assert all(len(country) == 2 and 15 <= size <= 33 for country, size in IBAN_LENGTHS.items())


def test_weights_are_applied_digit_by_digit() -> None:
    assert weighted("123", (3, 2, 1)) == 3 + 4 + 3


def test_numbers_of_goods_are_checked() -> None:
    assert is_ean("4006381333931")
    assert not is_ean("4006381333932")
