"""Speech without a voice: bytes of audio in proportion to characters, or events with them.

A model with `tts-1` in its name counts nothing and streams no events, like OpenAI's. Any other ends
its stream with the tokens of text and audio.
"""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from backends.simulator import words
from backends.simulator.dialect import RefusedError, SimulatedRules, decode, model_of

MS_PER_CHARACTER: Final = 60
TOKENS_PER_S: Final = 20
BYTES_PER_S: Final = 16_000
PIECE_BYTES: Final = 4_096
MEDIA: Final = {
    "mp3": "audio/mpeg", "opus": "audio/opus", "aac": "audio/aac", "flac": "audio/flac",
    "wav": "audio/wav", "pcm": "audio/pcm",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SpeechForm:
    model: str
    text: str
    format: str
    events: bool

    @property
    def seconds(self) -> float:
        return len(self.text) * MS_PER_CHARACTER / 1000

    @property
    def usage(self) -> dict[str, int]:
        read, made = words.count(self.text.encode()), max(1, round(self.seconds * TOKENS_PER_S))
        return {"input_tokens": read, "output_tokens": made, "total_tokens": read + made}


def parse_speech(body: bytes, rules: SimulatedRules) -> SpeechForm:
    fields = decode(body)
    text, voice = fields.get("input"), fields.get("voice")
    if not isinstance(text, str) or not text:
        raise RefusedError("validation", "Field required: input", "input")
    if voice is None:
        raise RefusedError("validation", "Field required: voice", "voice")
    form = fields.get("response_format") or "mp3"
    if not isinstance(form, str) or form not in MEDIA:
        raise RefusedError("validation", f"no such format: {form}", "response_format")
    model = model_of(fields, rules)
    events = fields.get("stream_format") == "sse"
    if events and "tts-1" in model:
        raise RefusedError("validation", "sse is not supported for this model", "stream_format")
    return SpeechForm(model, text, form, events)


def pieces(spoken: SpeechForm) -> Iterator[bytes]:
    """Yield the audio file in pieces, with bytes that depend on the text."""
    size = max(1, round(spoken.seconds * BYTES_PER_S))
    seed = words.seed_of(spoken.text.encode())
    for start in range(0, size, PIECE_BYTES):
        yield bytes([(seed + start) % 251]) * min(PIECE_BYTES, size - start)


def speech_events(spoken: SpeechForm) -> Iterator[bytes]:
    for piece in pieces(spoken):
        yield _event({"type": "speech.audio.delta", "audio": b64encode(piece).decode()})
    yield _event({"type": "speech.audio.done", "usage": spoken.usage})


def _event(value: Any) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"
