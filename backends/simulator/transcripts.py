"""Transcripts without a model: invented words in proportion to audio, in every format.

The standard library's mail parser reads the form, which checks the gateway's own parser against
another one. WAV files state their length; other files count 4,000 bytes as a second. A model with
`transcribe` in its name counts tokens and streams like OpenAI's; others count seconds.
"""

import io
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

import msgspec

from backends.simulator import words
from backends.simulator.asgi import JSON
from backends.simulator.dialect import RefusedError, SimulatedRules, model_of

WORDS_PER_S = 3
TOKENS_PER_S = 10
BYTES_PER_S = 4000
FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
PLAIN = (b"content-type", b"text/plain; charset=utf-8")

encode = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class TranscriptionForm:
    """The members of a transcription form; `seconds` comes from the file's own header."""

    model: str
    seconds: float
    text: str
    format: str
    stream: bool
    told: bool  # usage in a stream, as in a request to vLLM
    counts_tokens: bool

    @property
    def audio_tokens(self) -> int:
        return max(1, round(self.seconds * TOKENS_PER_S))

    @property
    def output_tokens(self) -> int:
        return words.count(self.text.encode())

    @property
    def usage(self) -> dict[str, Any]:
        if not self.counts_tokens:
            return {"type": "duration", "seconds": -int(-self.seconds // 1)}
        details = {"text_tokens": 0, "audio_tokens": self.audio_tokens}
        return {
            "type": "tokens",
            "input_tokens": self.audio_tokens,
            "input_token_details": details,
            "output_tokens": self.output_tokens,
            "total_tokens": self.audio_tokens + self.output_tokens,
        }


def parse_form(body: bytes, content_type: str, rules: SimulatedRules) -> TranscriptionForm:
    fields, files = read_form(body, content_type)
    if "file" not in files:
        raise RefusedError("validation", "Field required: file", "body.file")
    model = model_of(fields, rules)
    given = fields.get("response_format", "json")
    if given not in FORMATS:
        raise RefusedError("validation", f"no such format: {given}", "body.response_format")
    sound = files["file"]
    seconds = seconds_of(sound)
    count = max(1, round(seconds * WORDS_PER_S))
    return TranscriptionForm(
        model=model,
        seconds=seconds,
        text=words.text(words.seed_of(sound), max(count, 4)),
        format=given,
        stream=fields.get("stream") == "true",
        told=fields.get("stream_include_usage") == "true",
        counts_tokens="transcribe" in model,
    )


def seconds_of(sound: bytes) -> float:
    try:
        with wave.open(io.BytesIO(sound)) as opened:
            return float(opened.getnframes() / opened.getframerate())
    except (wave.Error, EOFError):
        return len(sound) / BYTES_PER_S


def whole_answer(heard: TranscriptionForm) -> tuple[bytes, tuple[bytes, bytes]]:
    """Return the whole answer and its content type."""
    end = f"{int(heard.seconds // 60):02d}:{heard.seconds % 60:06.3f}"
    if heard.format == "text":
        return heard.text.encode() + b"\n", PLAIN
    if heard.format == "srt":
        times = f"00:00:00,000 --> 00:{end.replace('.', ',')}"
        return f"1\n{times}\n{heard.text}\n\n".encode(), PLAIN
    if heard.format == "vtt":
        return f"WEBVTT\n\n00:00.000 --> {end}\n{heard.text}\n\n".encode(), PLAIN
    answer: dict[str, Any] = {"text": heard.text, "usage": heard.usage}
    if heard.format == "verbose_json":
        answer |= {"task": "transcribe", "language": "english", "duration": heard.seconds}
    return encode(answer), JSON


def events(heard: TranscriptionForm) -> Iterator[bytes]:
    """Yield OpenAI's stream: one event per word, then the whole text with its usage."""
    for place in range(heard.output_tokens):
        piece = words.cut_text(heard.text, place, place + 1)
        yield _event({"type": "transcript.text.delta", "delta": piece, "logprobs": []})
    yield _event({"type": "transcript.text.done", "text": heard.text, "usage": heard.usage})
    yield b"data: [DONE]\n\n"


def chunks(heard: TranscriptionForm, id: str, created: int) -> Iterator[bytes]:  # noqa: A002  (as on the wire)
    """Yield a transcript as vLLM streams it: chunks like those of a chat."""
    head = {"id": id, "object": "transcription.chunk", "created": created, "model": heard.model}
    last = heard.output_tokens - 1
    for place in range(heard.output_tokens):
        delta = {"content": words.cut_text(heard.text, place, place + 1)}
        choice = {"delta": delta, "finish_reason": "stop" if place == last else None}
        yield _event({**head, "choices": [choice]})
    if heard.told:
        prompt, output = heard.audio_tokens, heard.output_tokens
        counted = {"prompt_tokens": prompt, "completion_tokens": output}
        usage = {**counted, "total_tokens": prompt + output}
        yield _event({**head, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _event(value: Any) -> bytes:
    return b"data: " + encode(value) + b"\n\n"


def read_form(body: bytes, content_type: str) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return the fields and the files of a form."""
    head = f"content-type: {content_type}\r\n\r\n".encode("latin-1")
    message = BytesParser(policy=HTTP).parsebytes(head + body)
    if not message.is_multipart():
        raise RefusedError("validation", "the body must be multipart/form-data", "body")
    fields: dict[str, str] = {}
    files: dict[str, bytes] = {}
    for part in message.iter_parts():
        name = str(part.get_param("name", "", "content-disposition"))
        value = _bytes_of(part)
        if part.get_filename() is None:
            fields[name] = value.decode(errors="replace")
        else:
            files[name] = value
    return fields, files


def _bytes_of(part: Message) -> bytes:
    value = part.get_payload(decode=True)
    return value if isinstance(value, bytes) else b""
