"""Sound and files are found in any spelling, and in no text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kinds.prompt_parts import count_files, is_continued, sends_sound

SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
FILES = (
    {"type": "file", "file": {"file_id": "file-1"}},
    {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}},
    {"type": "input_file", "file_url": "https://a/b.pdf"},
    {"type": "document_url", "document_url": "https://a/b.pdf"},
)


def encoded(*parts, text="a") -> bytes:
    return json.dumps(
        [{"role": "user", "content": [{"type": "text", "text": text}, *parts]}]
    ).encode()


@st.composite
def spelled(draw, text: bytes) -> bytes:
    """The same JSON, with any letters of its strings as escapes."""
    kept = st.sampled_from(
        [lambda n: b"%c" % n, lambda n: b"\\u%04x" % n, lambda n: b"\\u%04X" % n]
    )
    return b"".join(draw(kept)(n) if chr(n).isalpha() else b"%c" % n for n in text)


@given(st.data(), st.sampled_from([SOUND, *FILES]))
def test_every_spelling_is_found(data, part) -> None:
    prompt = data.draw(spelled(encoded(part)))
    assert json.loads(prompt) == json.loads(encoded(part))
    assert sends_sound(prompt)
    assert (count_files(prompt) > 0) == (part is not SOUND)


def test_what_was_said_before_is_sound() -> None:
    assert sends_sound(json.dumps([{"role": "assistant", "audio": {"id": "audio_1"}}]).encode())


@pytest.mark.parametrize(
    "text",
    ['"file": "input_audio"', json.dumps(FILES[0]), json.dumps([SOUND]), "audio", "caf\u00e9 file"],
)
def test_a_text_about_them_has_none(text) -> None:
    prompt = encoded(text=text + ".")
    assert not sends_sound(prompt)
    assert count_files(prompt) == 0


@pytest.mark.parametrize(
    ("message", "continued"), [({"prefix": True}, True), ({"prefix": False}, False), ({}, False)]
)
def test_an_answer_that_goes_on_from_a_text(message, continued) -> None:
    prompt = json.dumps([{"role": "assistant", "content": '"prefix": true', **message}]).encode()
    assert is_continued(prompt) is continued
