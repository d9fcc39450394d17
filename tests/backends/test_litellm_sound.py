"""A sound's form as LiteLLM's arguments; what a form may hold does not change how it is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.base import Call
from backends.errors import RequestDeclined, RequestUnsendable
from backends.litellm_sound import form_members

TYPE = 'multipart/form-data; boundary="b0undary"'


def form(parts: list[tuple[str, bytes]], *, stream: bool = False, kind: str | None = TYPE) -> Call:
    lines = [
        b"--b0undary\r\nContent-Disposition: form-data; %s\r\n\r\n%s\r\n" % (head.encode(), content)
        for head, content in parts
    ]
    body = b"".join(lines) + b"--b0undary--\r\n"
    return Call("/audio/transcriptions", body, stream, content_type=kind)


MODEL = ('name="model"', b"nova-3")


@given(st.binary(max_size=200).filter(lambda sound: b"--b0undary" not in sound))
def test_the_sound_is_the_bytes_that_were_sent(sound: bytes) -> None:
    head = 'name="file"; filename="a.wav"\r\nContent-Type: audio/wav'
    members = form_members(form([(head, sound), MODEL, ('name="language"', b"de")]))
    assert members == {
        "file": ("a.wav", sound, "audio/wav"), "model": "nova-3", "language": "de",
    }  # fmt: skip


def test_what_it_cannot_answer_is_declined() -> None:
    for parts, stream in [([MODEL, ('name="response_format"', b"srt")], False), ([MODEL], True)]:
        with pytest.raises(RequestDeclined):
            form_members(form(parts, stream=stream))
    assert form_members(form([MODEL, ('name="response_format"', b"json")]))


@pytest.mark.parametrize("kind", [None, "application/json", TYPE])
def test_what_is_no_form_of_a_model_is_not_sent(kind: str | None) -> None:
    with pytest.raises(RequestUnsendable):
        form_members(form([('name="language"', b"de"), ("other", b"")], kind=kind))
