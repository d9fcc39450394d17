import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.money import (
    PUSD_PER_USD,
    MoneyError,
    ceil_div,
    divide_half_even,
    format_usd,
    pusd_to_usd,
    split_largest_remainder,
    usd_exact,
    usd_per_million_to_pusd,
    usd_text,
    usd_to_pusd,
    usd_to_pusd_rounded,
)

AMOUNTS = st.integers(-(10**30), 10**30)


@given(AMOUNTS)
def test_usd_and_back_is_the_same_amount(pusd):
    assert usd_to_pusd(pusd_to_usd(pusd)) == pusd


@given(AMOUNTS)
def test_exact_text_is_the_amount_with_all_its_places(pusd):
    text = usd_exact(pusd)
    assert re.fullmatch(r"-?\d+\.\d{12}", text)
    assert int(text.replace(".", "")) == pusd
    assert usd_exact(-1) == "-0.000000000001"


@given(st.integers(0, 10**15))
def test_micro_usd_per_million_tokens_is_pico_usd_per_token(micro_usd):
    assert usd_per_million_to_pusd(Decimal(micro_usd) / 1_000_000) == micro_usd


@pytest.mark.parametrize(
    ("usd", "pusd"),
    [
        (Decimal("0.15"), 150_000_000_000),
        (Decimal("1E-12"), 1),
        (Decimal("-9.80"), -9_800_000_000_000),
        (3, 3 * PUSD_PER_USD),
    ],
)
def test_exact_conversions(usd, pusd):
    assert usd_to_pusd(usd) == pusd


@pytest.mark.parametrize(
    "usd",
    [
        0.15,
        "0.15",
        True,
        Decimal("1E-13"),
        Decimal("NaN"),
        Decimal("Infinity"),
        Decimal("1." + 70 * "1"),
    ],
)
def test_what_is_not_exact_is_refused(usd):
    with pytest.raises(MoneyError):
        usd_to_pusd(usd)


def test_a_price_finer_than_a_pico_per_token_is_refused():
    with pytest.raises(MoneyError, match="finer"):
        usd_per_million_to_pusd(Decimal("0.0000001"))


@pytest.mark.parametrize(
    ("usd", "pusd"), [("1.5E-12", 2), ("2.5E-12", 2), ("1.6000000000000000001E-6", 1_600_000)]
)
def test_declared_rounding_is_half_even(usd, pusd):
    assert usd_to_pusd_rounded(Decimal(usd)) == pusd


@pytest.mark.parametrize(
    ("pusd", "places", "text"),
    [
        (1_234_500_000_000_000, None, "$1,234.50"),
        (1, None, "$0.000000000001"),
        (0, None, "$0.00"),
        (-2_500_000_000_000, None, "-$2.50"),
        (1_234_565_000_000_000, 2, "$1,234.56"),
        (-1, 2, "$0.00"),
        (-10_000_000_000, 2, "-$0.01"),
    ],
)
def test_format(pusd, places, text):
    assert format_usd(pusd, places) == text


@pytest.mark.parametrize(
    ("pusd", "text"),
    [
        (0, "$0.00"), (1, "$0.000000000001"), (33_000, "$0.000000033"),
        (-33_333, "-$0.0000000333"), (99_999_999, "$0.0001"), (10**11 * 9, "$0.90"),
        (10**12 - 1, "$1.00"), (123 * 10**10, "$1.23"), (1_234_567 * 10**12, "$1,234,567"),
        (Fraction(10**12, 3), "$0.333"), (Fraction(1, 3), "$0.00"),
    ],
)  # fmt: skip
def test_a_sum_as_people_read_it(pusd, text):
    assert usd_text(pusd) == text


@given(AMOUNTS.filter(bool), st.booleans())
def test_no_sum_is_shown_with_an_exponent_or_as_nothing(pusd, sign):
    text = usd_text(pusd, sign=sign)
    assert re.fullmatch(r"[-+]?\$[0-9,]+(\.[0-9]{2,12})?", text)
    assert re.search("[1-9]", text)
    shown = Decimal(text.replace("$", "").replace(",", ""))
    assert abs(shown - pusd_to_usd(pusd)) <= abs(pusd_to_usd(pusd)) / 100


@given(st.integers(-(10**18), 10**18), st.integers(1, 10**12))
def test_division_is_within_half_a_unit_and_ties_are_even(numerator, denominator):
    quotient = divide_half_even(numerator, denominator)
    error = abs(2 * (numerator - quotient * denominator))
    assert error <= denominator
    if error == denominator:
        assert quotient % 2 == 0


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**12), st.integers(1, 1000))
def test_division_upwards_is_the_least_integer_that_is_enough(numerator, denominator, part):
    for value in (numerator, Fraction(numerator, part)):
        least = ceil_div(value, denominator)
        assert isinstance(least, int)
        assert (least - 1) * denominator < value <= least * denominator


@pytest.mark.parametrize("denominator", [0, -1])
def test_division_upwards_needs_a_positive_denominator(denominator):
    with pytest.raises(MoneyError):
        ceil_div(1, denominator)


def test_division_needs_a_positive_denominator():
    with pytest.raises(MoneyError):
        divide_half_even(1, 0)


@given(AMOUNTS, st.lists(st.integers(0, 10**12), min_size=1).filter(any))
def test_a_split_adds_up_and_is_fair_to_the_unit(total, weights):
    shares = split_largest_remainder(total, weights)
    assert sum(shares) == total
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share * sum(weights) - total * weight) < sum(weights)
        assert weight or not share


def test_a_split_prefers_the_earlier_place_on_equal_remainders():
    assert split_largest_remainder(10, [1, 1, 1]) == [4, 3, 3]
    assert split_largest_remainder(-10, [1, 1, 1]) == [-4, -3, -3]


def test_a_split_over_nothing():
    assert split_largest_remainder(0, [0, 0]) == [0, 0]
    assert split_largest_remainder(0, []) == []
    with pytest.raises(MoneyError, match="all weights are zero"):
        split_largest_remainder(1, [0, 0])
    with pytest.raises(MoneyError, match="negative"):
        split_largest_remainder(1, [2, -1])
