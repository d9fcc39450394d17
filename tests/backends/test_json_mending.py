"""What a strict reader refuses and its writer meant."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.chunks import parse_answer, read_chunk
from backends.json_mending import mend_json
from backends.text_length import answer_content_bytes

USAGE = b'"usage": {"prompt_tokens": 7, "completion_tokens": 2}'


@pytest.mark.parametrize("odd", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-2.5E+4000"])
def test_numbers_that_are_none_hide_no_answer(odd: bytes) -> None:
    """Red before: such an answer was booked at its whole hold."""
    body = b'{"choices": [{"message": {"content": "ab"}, "logprobs": [%b, 1]}], %b}' % (odd, USAGE)
    assert parse_answer(body).usage == {"prompt_tokens": 7, "completion_tokens": 2}
    assert answer_content_bytes(body) == 2
    chunk = read_chunk(b'{"choices": [{"delta": {"content": "NaN"}, "logprobs": %b}]}' % odd)
    assert chunk is not None
    assert chunk.choices is not None
    assert chunk.choices[0].said()[0] == 3


def test_texts_and_whole_numbers_are_kept() -> None:
    for text in (b'{"a": "NaN \\" Infinity 1e999"}', b'{"NaN": 1.5e99}', b"[12, -3.0e-7]", b"{"):
        assert mend_json(text) is None
    assert mend_json(b'{"a": "\\ud83d", "b": NaN}') == b'{"a": "\\ufffd", "b": null}'


@given(st.recursive(
    st.floats() | st.text(max_size=6) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
))  # fmt: skip
def test_whatever_python_writes_can_be_read(value) -> None:
    text = json.dumps(value).encode()
    mended = mend_json(text)
    msgspec.json.decode(text if mended is None else mended)


@pytest.mark.parametrize("text", [b'"' * 50_001, b'"' + b"\\" * 50_000, b"-" * 50_000])
def test_mending_takes_no_longer_than_its_text(text: bytes) -> None:
    assert mend_json(text) is None
