"""Sounds within a conversation, held at their decoded duration.

A sound has many more bytes than tokens. `measure_sounds` counts each `input_audio` part that can be
decoded by its duration; any other counts as a file, which may fill a context.
"""

import asyncio
import binascii
import re
from contextlib import suppress
from typing import Final, NamedTuple

from msgspec.structs import replace

from gateway.kinds.audio_duration import decode_length
from gateway.kinds.billable_units import sound_tokens
from gateway.kinds.chat_media import sounds_of
from gateway.kinds.inference_request import InferenceRequest
from gateway.sound.sound_decoder import SoundLengths
from router.prompts import RequestUnits

SOUNDS_LIMIT: Final = 8  # decoded per request, each in a process of its own
WAIT_S: Final = 90.0  # for all of them, including the wait for a decoder
_BLANKS: Final = re.compile(r"\s+")  # line breaks of Base64, as in mail


class _SoundPart(NamedTuple):
    text_bytes: int  # of the request's text that are the sound
    sound: bytes


async def measure_sounds(request: InferenceRequest, sounds: SoundLengths) -> InferenceRequest:
    """Return the request with its sounds counted by their decoded duration, if there is one."""
    messages = request.members.get("messages")
    if not request.media_parts or messages is None:
        return request
    text_bytes = known = tokens = tokens_bound = 0
    with suppress(TimeoutError):  # sounds not decoded by then stay files
        async with asyncio.timeout(WAIT_S):
            for part in await asyncio.to_thread(_sound_parts, bytes(messages)):
                lasts = await decode_length(part.sound, sounds)
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
        files=request.files - known,
        sound_tokens=tokens,
        sound_tokens_bound=tokens_bound,
    )


def _sound_parts(messages: bytes) -> list[_SoundPart]:
    """Return the first sounds that a conversation contains as Base64."""
    found: list[_SoundPart] = []
    for data in sounds_of(messages):
        if len(found) == SOUNDS_LIMIT:
            break
        try:
            sound = binascii.a2b_base64(_BLANKS.sub("", data), strict_mode=True)
        except ValueError:  # the target reports the error, or reads it in another way
            continue
        if sound:
            found.append(_SoundPart(len(data), sound))
    return found
