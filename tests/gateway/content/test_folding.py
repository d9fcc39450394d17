"""One spelling for what looks alike, one for one but for what has no width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.content.folding import fold, folded_characters, places_of
from gateway.content.text_scanner import TextScanner


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\uff14\uff11\uff11\uff11", "4111"), ("4\u200b1\u20601\u00ad1", "4111"),
        ("j\u0430n\u0435@\u0435\u0445ample.\u0441om", "jane@example.com"), ("\u0664\u0661", "41"),
        ("1\u00a02\u20113", "1 2-3"), ("\U0001d7d2", "4"), ("caf\u00e9", "caf\u00e9"),
    ],
)  # fmt: skip
def test_what_looks_alike_is_written_alike(text, plain) -> None:
    assert fold(text) == plain


@given(st.text())
def test_each_folded_character_has_its_place(text) -> None:
    folded, places = fold(text), places_of(text)
    assert len(places) == len(folded) + 1
    table = folded_characters()
    for letter, place in zip(folded, places, strict=False):
        assert letter == table.get(ord(text[place]), text[place])


@given(st.text())
def test_a_folded_text_is_folded(text) -> None:
    assert fold(fold(text)) == fold(text)


def test_marks_that_enclose_a_digit_vanish() -> None:
    for mark in ("\ufe0f\u20e3", "\u20e3", "\u20d2", "\u20dd"):
        assert fold("".join(digit + mark for digit in "4111")) == "4111"
        assert (
            TextScanner(("card",))
            .scan(["\u00e4" * 5000 + " " + "".join(digit + mark for digit in "4111111111111111")])
            .finds
        )
