"""Sounds inside a conversation: held at the length that a decoder hears.

A sound's text is many times longer than its tokens. `measure_sounds` counts each `input_audio`
part that can be decoded by its length; any other stays counted by its bytes.
"""

import asyncio
import binascii
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from gateway.kinds.audio_duration import duration_of
from gateway.kinds.billable_units import sound_tokens
from gateway.kinds.inference_request import InferenceRequest
from gateway.sound.sound_decoder import SoundLengths
from router.prompts import RequestUnits

SOUNDS_LIMIT: Final = 8  # that are decoded of one request: each takes a process of its own
WAIT_S: Final = 60.0  # for all of them, with what else waits for the decoder


class _SoundPart(NamedTuple):
    text_bytes: int  # of the request that are the sound
    sound: bytes


async def measure_sounds(request: InferenceRequest, sounds: SoundLengths) -> InferenceRequest:
    """Return the request with its sounds counted by their decoded length, where there is one."""
    messages = request.members.get("messages")
    if not request.media_parts or messages is None:
        return request
    text_bytes = known = tokens = tokens_bound = 0
    with suppress(TimeoutError):  # what is not heard by then stays counted by its bytes
        async with asyncio.timeout(WAIT_S):
            for part in await asyncio.to_thread(_sound_parts, bytes(messages)):
                lasts = duration_of(len(part.sound), await sounds.decode(part.sound))
                if not lasts.known:
                    continue
                heard = sound_tokens(RequestUnits(audio_ms=lasts.ms, audio_ms_bound=lasts.bound_ms))
                known, text_bytes = known + 1, text_bytes + part.text_bytes
                tokens, tokens_bound = tokens + heard[0], tokens_bound + heard[1]
    if not known:
        return request
    return replace(
        request,
        prompt_bytes=request.prompt_bytes - text_bytes,
        media_parts=request.media_parts - known,
        sound_tokens=tokens,
        sound_tokens_bound=tokens_bound,
    )


def _sound_parts(messages: bytes) -> list[_SoundPart]:
    """The first sounds of a conversation that are sent in it as Base64."""
    found: list[_SoundPart] = []
    try:
        decoded = msgspec.json.decode(messages)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # `1e999`, say
        return found  # its sounds stay counted by their bytes
    for data in _sound_data(decoded):
        if len(found) == SOUNDS_LIMIT:
            break
        try:
            sound = binascii.a2b_base64(data, strict_mode=True)
        except ValueError:  # its target says what is wrong with it
            continue
        if sound:
            found.append(_SoundPart(len(data), sound))
    return found


def _sound_data(messages: Any) -> Iterator[str]:
    """`data` of each part that says that it is a sound: it is counted as one everywhere."""
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, dict) or part.get("type") != "input_audio":
                continue
            stated = part.get("input_audio")
            data = stated.get("data") if isinstance(stated, dict) else None
            if isinstance(data, str) and data.isascii():
                yield data
