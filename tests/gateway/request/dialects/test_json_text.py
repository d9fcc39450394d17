"""The text of a member while it is written: however it is cut, it comes to the same."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.request.dialects.json_text import JsonTextReader

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)


def read(pieces: list[str]) -> list[str]:
    reader = JsonTextReader("input")
    return [reader.feed(piece) for piece in pieces]


@given(text=TEXT, cuts=st.lists(st.integers(0, 200), max_size=8), is_ascii=st.booleans())
def test_any_text_cut_anywhere(text: str, cuts: list[int], is_ascii: bool) -> None:
    written = json.dumps({"input": text, "more": "x"}, ensure_ascii=is_ascii)
    places = sorted({0, len(written), *(cut % (len(written) + 1) for cut in cuts)})
    pieces = [written[a:b] for a, b in pairwise(places)]
    reader = JsonTextReader("input")
    told = "".join(reader.feed(piece) for piece in pieces)
    assert told == text
    assert reader.size == len(text)


def test_it_comes_as_soon_as_it_is_known() -> None:
    assert read(['{"in', 'put": "a', "b\\", "n", 'c"', ', "d": "e"}']) == [
        "", "a", "b", "\n", "c", ""
    ]  # fmt: skip
    assert read(['{"input": "\\ud83d', "\\ude00", '"}']) == ["", "\U0001f600", ""]


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        (["*** Begin", " Patch"], "*** Begin Patch"),  # no object: the text itself
        (["  ", "x"], "  x"),
        (["{", '"other": "x"}'], ""),
        (['{"input": 5}'], ""),
        (['{"input": "\\ud83dx"}'], "\ufffdx"),
        (['{"input": "\\uZZZZ"}'], ""),
        ([""], ""),
    ],
)
def test_what_is_written_otherwise(pieces: list[str], told: str) -> None:
    assert "".join(read(pieces)) == told
