"""How long what an answer says is: every text of the model, and nothing that is only form."""

import msgspec
import pytest

from backends.chunks import read_chunk
from backends.text_length import (
    ENCODED_FROM,
    answer_content_bytes,
    content_bytes,
    encoded_content_bytes,
    has_pictures,
    text_bytes,
)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("abc", 3),
        ("\u00e4\u20ac", 5),
        (None, 0),
        (7, 0),
        ([{"type": "text", "text": "four"}], 4),
        ({"role": "assistant", "id": "x", "content": "ab", "refusal": None}, 2),
        ([{"id": "call", "function": {"name": "look", "arguments": '{"a":1}'}}], 11),
        ({"audio": {"id": "a", "data": "AAAA", "transcript": "hey"}}, 3),
        ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}], 0),
        ("![a](data:image/png;base64," + "AAAA" * 999 + ") is it", 26),
    ],
)
def test_texts_count_and_form_does_not(value, size):
    assert content_bytes(value) == size
    assert encoded_content_bytes(msgspec.json.encode(value)) == size


def test_nesting_is_no_limit():
    value = "x"
    for _ in range(50_000):
        value = [value]
    assert content_bytes(value) == 1


@pytest.mark.parametrize(
    ("body", "size"),
    [
        (b'{"id":"long","choices":[{"message":{"content":"abc"}},{"text":"de"}]}', 5),
        (b'{"data":[{"embedding":"AAAA"}],"model":"m"}', 0),
        (b"[1]", 3),
        (b"no json", 7),
    ],
)
def test_of_a_whole_answer_its_choices_count(body, size):
    assert answer_content_bytes(body) == size


@pytest.mark.parametrize(
    ("delta", "size"),
    [
        ({"content": "abc", "role": "assistant"}, 3),
        ({"reasoning": "abcd", "reasoning_content": "abcd"}, 4),
        ({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}, 2),
        ({"content": [{"type": "text", "text": "parts"}]}, 5),
        ({}, 0),
    ],
)
def test_of_a_chunk_its_delta_counts(delta, size):
    chunk = read_chunk(msgspec.json.encode({"choices": [{"index": 0, "delta": delta}]}))
    assert [choice.content_bytes() for choice in chunk.choices] == [size]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ({"content": "", "images": [{"image_url": {"url": "https://e/a.png"}}]}, True),
        ({"content": [{"type": "image_url", "image_url": {"url": "https://e/a.png"}}]}, True),
        ({"content": "![a](data:image/png;base64,AAAA)"}, True),
        ({"content": 'the member "images", or "image_url"'}, False),
    ],
)
def test_pictures_are_found_by_their_names(message, shown):
    assert has_pictures(msgspec.json.encode({"choices": [{"message": message}]})) is shown


@pytest.mark.parametrize(
    ("before", "size"),
    [
        (0, 26),  # too short to be looked through
        (ENCODED_FROM - 26, ENCODED_FROM),
        (ENCODED_FROM - 25, ENCODED_FROM - 25 + 14),
    ],
)
def test_an_encoded_picture_in_a_long_text_is_none_of_it(before, size):
    assert text_bytes("a" * before + "data:image/png" + ";base64,AAAA") == size
