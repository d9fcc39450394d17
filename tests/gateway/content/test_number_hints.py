"""What a text as a whole tells of its numbers."""

import pytest

from gateway.content.number_hints import NumberHints


@pytest.mark.parametrize(
    ("text", "written", "expected"),
    [
        ("took 1234567 ms", "1234567", False), ("phone 1234567", "1234567", True),
        ("x", "+491234567", True), ("x", "0049123456", True), ("x", "415-555-2671", True),
        ("x", "123-45-6789", True), ("x", "180126955222380", True), ("x", "12345678901", False),
        ("my pesel: 12345678901", "12345678901", True), ("id card 123456789", "123456789", True),
        ("SIN 123456789", "123456789", True), ("processing id 123456789", "123456789", False),
    ],
)  # fmt: skip
def test_numbers_that_nothing_names_are_passed_over(text, written, expected) -> None:
    digits = sum(map(str.isdigit, written))
    assert NumberHints(text).may_be_named(written, digits) is expected
