"""Sounds of a conversation are held at the length that is decoded, else by their bytes."""

import asyncio
import base64
import json
from typing import Any

import msgspec
import pytest

from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.kinds.chat_sound import SOUNDS_LIMIT, measure_sounds
from gateway.kinds.inference_request import InferenceRequest
from gateway.sound.decoded_sound import DecodedSound

SOUND = base64.b64encode(b"RIFF" + bytes(60_000)).decode()
SECOND = DecodedSound(heard_ms=1000, most_ms=1000)


class Decoder:
    """Hears what it is told, and keeps count."""

    def __init__(self, heard: DecodedSound | None) -> None:
        self._heard = heard
        self.asked = 0

    async def decode(self, sound: bytes) -> DecodedSound | None:
        assert sound.startswith(b"RIFF")
        self.asked += 1
        return self._heard

    async def aclose(self) -> None: ...


def asked(*parts: dict[str, Any]) -> InferenceRequest:
    text = {"type": "text", "text": "what is said?"}
    messages = [{"role": "user", "content": "hi"}, {"role": "user", "content": [text, *parts]}]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    return read_chat(decode_members(body), max_n=1, session=None)


def sound(data: Any = SOUND) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def measured(request: InferenceRequest, heard: DecodedSound | None) -> InferenceRequest:
    return asyncio.run(measure_sounds(request, Decoder(heard)))


def test_a_decoded_sound_counts_by_its_length() -> None:
    request = asked(sound(), sound())
    found = measured(request, SECOND)
    assert found.prompt_bytes == request.prompt_bytes - 2 * len(SOUND)
    assert (request.media_parts, found.media_parts) == (2, 0)
    assert (request.files, found.files) == (2, 0)
    # Ten tokens a second are usual, fifty the most; of a second more, which providers round to.
    assert (found.sound_tokens, found.sound_tokens_bound) == (2 * 10, 2 * 100)


@pytest.mark.parametrize("heard", [None, DecodedSound(0, 0)])
def test_what_cannot_be_decoded_is_a_file(heard) -> None:
    request = asked(sound())
    assert request.files == 1
    assert measured(request, heard) is request


@pytest.mark.parametrize(
    "part",
    [
        sound("no Base64!"), sound(""), sound(7), sound("\u00e4\u00e4\u00e4\u00e4"),
        {"type": "input_audio"}, {"type": "input_audio", "input_audio": "x"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ],
)  # fmt: skip
def test_other_parts_are_left_as_they_are(part) -> None:
    request = asked(part)
    assert measured(request, SECOND) is request


def test_only_so_many_are_decoded() -> None:
    decoder = Decoder(SECOND)
    request = asked(*[sound()] * (SOUNDS_LIMIT + 2))
    found = asyncio.run(measure_sounds(request, decoder))
    assert decoder.asked == SOUNDS_LIMIT
    assert found.prompt_bytes == request.prompt_bytes - SOUNDS_LIMIT * len(SOUND)
    assert (found.media_parts, found.files) == (2, 2)


@pytest.mark.parametrize(
    "part",
    [
        sound("data:;base64," + SOUND),
        sound("data:audio/wav;base64," + SOUND),
        sound(SOUND[:76] + "\n" + SOUND[76:]),
        {"input_audio": {"data": SOUND}},
        {"type": "audio_url", "audio_url": {"url": "data:audio/wav;base64," + SOUND}},
    ],
)
def test_base64_is_decoded_however_it_is_sent(part) -> None:
    found = measured(asked(part), SECOND)
    assert (found.media_parts, found.files, found.sound_tokens) == (0, 0, 10)
    assert found.prompt_bytes < 400


def test_a_sound_by_an_escaped_name_is_one() -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": [sound()]}]})
    body = body.replace("input_audio", "input\\u005faudio")
    request = read_chat(decode_members(body.encode()), max_n=1, session=None)
    assert request.has_sound
    assert measured(request, SECOND).media_parts == 0


def test_a_conversation_that_cannot_be_decoded_keeps_its_sounds_bytes() -> None:
    request = asked(sound())
    odd = bytes(request.members["messages"]).replace(b'"wav"', b"1e999")
    request.members["messages"] = msgspec.Raw(odd)
    assert measured(request, SECOND) is request


def test_what_is_not_heard_in_time_counts_by_its_bytes(monkeypatch) -> None:
    """The first is heard at once; the second's decoder is busy for good."""
    monkeypatch.setattr("gateway.kinds.chat_sound.WAIT_S", 0.05)
    request = asked(sound(), sound())

    class Busy(Decoder):
        async def decode(self, sound: bytes) -> DecodedSound | None:
            if self.asked:
                await asyncio.Event().wait()
            return await super().decode(sound)

    found = asyncio.run(measure_sounds(request, Busy(SECOND)))
    assert found.prompt_bytes == request.prompt_bytes - len(SOUND)
    assert (found.media_parts, found.files) == (1, 1)
