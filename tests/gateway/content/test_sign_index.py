"""Signs by their owners, and characters that may hide something."""

import pytest

from gateway.content.detectors import DETECTORS
from gateway.content.folding import FoldedText
from gateway.content.sign_index import ESCAPED, FoldingIndex, SignIndex


@pytest.fixture(scope="module")
def folding() -> FoldingIndex:
    return FoldingIndex()


def test_each_place_is_told_by_whose_sign_ends_there() -> None:
    found = SignIndex(DETECTORS).find(b"\x1ea@b.com %41 4111111111111111\x1f")
    names = {place if place == ESCAPED else DETECTORS[place].find.__name__ for place in found}
    assert names == {ESCAPED, "find_emails", "find_card_spans", "find_uneven_cards"}
    assert all(places == sorted(places) for places in found.values())


@pytest.mark.parametrize(
    "text",
    ["\u0434\u0430, \u043c\u0438\u0440. ", "\u8fd9\u662f\uff0c", "f\u00fcr", "it\u2019s"],
)  # fmt: skip
def test_text_of_one_script_hides_nothing(folding, text) -> None:
    assert folding.find((text * 20).encode()) == []


@pytest.mark.parametrize(
    "text",
    ["j\u0430ne", "\uff14\uff11", "4\u200b1", "\u0664\u0661", "1\u00a02", "x.\u0441om", "a\u2011b",
     "1\ufe0f2", "4\u3000 1"],
)  # fmt: skip
def test_what_is_folded_is_seen(folding, text) -> None:
    assert folding.find(text.encode())


def test_a_text_is_folded_where_it_says_alone() -> None:
    source = "\u0430\u200bb \u0430 4\u200b1"
    folded = FoldedText(source, [(6, 9)])
    assert folded.text == "\u0430\u200bb \u0430 41"
    assert [source[place : place + 1] for place in folded.places()] == [*source[:7], "1", ""]
    assert FoldedText("abc", []).places() == range(4)
