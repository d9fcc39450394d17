"""All texts of a value are read, and put back in their places."""

import json

from hypothesis import given
from hypothesis import strategies as st

from gateway.content.body_texts import (
    BodyTexts,
    TextRewriter,
    digits_of,
    is_all,
    is_media,
    open_json,
)

LEAVES = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner)
)


def texts_of(value) -> list[str]:
    body = BodyTexts()
    body.add(value)
    return body.texts


@given(VALUES)
def test_putting_the_same_back_changes_nothing(value) -> None:
    assert TextRewriter({}).rewrite(value) == value


@given(VALUES, st.data())
def test_a_text_is_put_where_it_was_read(value, data) -> None:
    texts = texts_of(value)
    if not texts:
        return
    place = data.draw(st.integers(0, len(texts) - 1))
    changed = texts_of(TextRewriter({place: "\u2603 other"}).rewrite(value))
    assert "\u2603 other" in changed


def test_arguments_are_opened_and_numbers_are_digits() -> None:
    inner = json.dumps({"card": 4111111111111111, "note": "a\u0041"})
    value = {"arguments": inner, "n": 7, "big": 4111111111111111.0, "flag": True}
    texts = texts_of(value)
    assert texts.count("4111111111111111") == 2
    assert "aA" in texts
    place = texts.index("4111111111111111")
    made = TextRewriter({place: "[card-1]"}).rewrite(value)
    assert json.loads(made["arguments"])["card"] == "[card-1]"


def test_small_numbers_of_a_list_are_one_text_too() -> None:
    digits = [int(digit) for digit in "4111111111111111"]
    value = {"digits": digits, "prompt": digits, "sizes": [1, 2], "mixed": [1, "a", 3]}
    texts = texts_of(value)
    assert texts.count(str(digits)) == 1
    made = TextRewriter({texts.index(str(digits)): "[card-1]"}).rewrite(value)
    assert made == {**value, "digits": ["[card-1]"]}


def test_a_file_is_counted_and_not_read() -> None:
    body = BodyTexts()
    body.add({"url": "data:image/png;base64,AAAA", "data": "Qk0" * 2000})
    assert (body.media, [text for text in body.texts if "AAAA" in text]) == (2, [])
    assert not is_media("words " * 1000)
    assert open_json("{no") is None
    assert digits_of(True) is None


def test_what_the_user_says_is_told_apart() -> None:
    body = BodyTexts()
    body.add([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
    assert [body.texts[place] for place in body.spoken] == ["a"]
    assert [body.texts[place] for place in body.content] == ["a", "b"]


@given(VALUES)
def test_what_a_decoder_keeps_is_all(value) -> None:
    body = BodyTexts()
    body.count(value)
    for raw in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert is_all(raw.encode(errors="replace"), body.strings)


def test_a_name_that_stands_twice_is_noticed() -> None:
    """Also beside texts that end with a backslash, whose quote looks escaped."""
    for raw in ('{"a": "x", "a": "y"}', r'["\\", "\\", "\\", "\\", {"a": "x", "a": "y"}]'):
        body = BodyTexts()
        body.count(json.loads(raw))
        assert not is_all(raw.encode(), body.strings)
    assert open_json('{"a": 1, "a": 2}') is None
