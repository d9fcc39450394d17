"""What is read of an OpenAI-style answer, whole or in chunks: usage, endings, first content.

Only the members that money and timing depend on are decoded, and usage stays encoded until
someone asks. Members with types of their own (content as a list of parts, ...) take a slower
way and never fail; an answer that is no JSON object does.
"""

import re
from typing import Any, NamedTuple

import msgspec

from backends.errors import BackendError, InvalidResponse, StreamError, UpstreamBroken
from backends.reported import error_in, read_error
from backends.text_length import (
    ENCODED_FROM,
    content_bytes,
    encoded_content_bytes,
    has_base64,
    text_bytes,
)
from backends.usage_bytes import (
    count_of,
    decode_object,
    decode_usage,
    groq_usage_bytes,
    usage_bytes,
)

WORD_LIMIT = 64  # characters of a target's word that are kept
_NULL = msgspec.Raw(b"null")
_SHOWN = msgspec.Raw(b"[{}]")
_ERROR_EVENT = re.compile(rb"(?:^|[\r\n])event: ?error[\r\n]")
_EMPTY = frozenset((b"null", b"[]", b"{}", b'""'))
# Escapes: those of backslashes and whole pairs are kept, what is left is half of a character.
_HALVES = re.compile(
    rb"(\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


def _is_given(raw: msgspec.Raw) -> bool:
    return raw is not _NULL and bytes(raw) not in _EMPTY


class Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: msgspec.Raw = _NULL
    function_call: msgspec.Raw = _NULL
    audio: msgspec.Raw = _NULL
    images: msgspec.Raw = _NULL


# Members of a delta that are read, or are no words of the model.
_KNOWN = frozenset((*Delta.__struct_fields__, "role", "name", "id", "type", "index", "signature",
                    "annotations", "provider_specific_fields"))  # fmt: skip


class ChunkChoice(msgspec.Struct, gc=False):
    index: int = 0
    finish_reason: str | None = None
    text: str | None = None
    delta: Delta | None = None
    usage: msgspec.Raw = _NULL  # where Kimi tells it
    error: msgspec.Raw = _NULL

    def is_failed(self) -> bool:
        """Whether it ends in an error instead of an answer."""
        return self.finish_reason == "error" or _is_given(self.error)

    def has_content(self) -> bool:
        """Whether the model said something here: text, reasoning, a tool call, a picture, ..."""
        if self.text:
            return True
        delta = self.delta
        if delta is None:
            return False
        if delta.content or delta.reasoning_content or delta.reasoning or delta.refusal:
            return True
        others = (delta.tool_calls, delta.function_call, delta.audio, delta.images)
        return any(raw is not _NULL and bytes(raw) not in _EMPTY for raw in others)

    def usage_bytes(self) -> bytes | None:
        """The encoded usage object that stands inside, as Kimi writes it; `None` without one."""
        return None if self.usage is _NULL else usage_bytes(self.usage)

    def shows(self) -> bool:
        """Whether a picture is in it, whose tokens no text tells."""
        delta = self.delta
        if delta is None:
            return False
        content = delta.content
        if content is not None and len(content) > ENCODED_FROM and has_base64(content):
            return True
        return delta.images is not _NULL and bytes(delta.images) not in _EMPTY

    def content_bytes(self) -> int:
        """How much it said, in bytes of text."""
        said = text_bytes(self.text) if self.text else 0
        delta = self.delta
        if delta is None:
            return said
        thought = delta.reasoning_content or delta.reasoning  # one text under two names
        for text in (delta.content, thought, delta.refusal):
            if text:
                said += text_bytes(text)
        for raw in (delta.tool_calls, delta.function_call, delta.audio):
            if raw is not _NULL:
                said += encoded_content_bytes(bytes(raw))
        return said


class Chunk(msgspec.Struct, gc=False):
    """What is read of one chunk. `usage` and `error` stay encoded."""

    choices: list[ChunkChoice] | None = None
    usage: msgspec.Raw = _NULL
    error: msgspec.Raw = _NULL
    service_tier: str | None = None
    x_groq: msgspec.Raw = _NULL  # where Groq tells usage that nobody asked for

    def usage_bytes(self) -> bytes | None:
        """The encoded usage, or `None` when there is none."""
        return None if self.usage is _NULL else usage_bytes(self.usage)

    def vendor_usage_bytes(self) -> bytes | None:
        """The encoded usage inside `x_groq`; `None` without one."""
        return None if self.x_groq is _NULL else groq_usage_bytes(self.x_groq)

    def error_bytes(self) -> bytes | None:
        """The encoded error an upstream reports in its stream, or `None`."""
        if self.error is _NULL:
            return None
        value = bytes(self.error)
        return None if value in _EMPTY else value


_decode_chunk = msgspec.json.Decoder(Chunk).decode
_decode_any = msgspec.json.Decoder().decode


def read_chunk(payload: bytes) -> Chunk | None:
    """Decode one event's data; `None` when it is not a JSON object."""
    try:
        return _decode_chunk(payload)
    except msgspec.ValidationError:
        return _read_odd(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        mended = whole_characters(payload)
        return None if mended is None else read_chunk(mended)


def unknown_bytes(payload: bytes) -> int:
    """Bytes of text in members of a chunk's deltas that have no name here."""
    value = decode_object(payload) or {}
    choices = value.get("choices")
    said = 0
    for choice in choices if isinstance(choices, list) else ():
        delta = choice.get("delta") if isinstance(choice, dict) else None
        if isinstance(delta, dict):
            said += sum(content_bytes(words) for name, words in delta.items() if name not in _KNOWN)
    return said


def whole_characters(text: bytes) -> bytes | None:
    """JSON with U+FFFD for halves of characters (an escape of `d83d` alone); `None` without any.

    Servers that count a text in UTF-16 cut characters in two, and many clients join them again.
    """
    mended = _HALVES.sub(_whole_or_unknown, text)
    return None if mended == text else mended


def _whole_or_unknown(found: re.Match[bytes]) -> bytes:
    return found[1] or rb"\ufffd"


def tells_error(event: bytes, payload: bytes) -> bool:
    """Whether an event without choices is an error that has no member `error` to say so.

    Older engines send the error itself (`object` or `type` is `error`); others name the event.
    """
    if _ERROR_EVENT.search(event):
        return True
    found = decode_object(payload) or {}
    return "error" in (found.get("object"), found.get("type"))


def _read_odd(payload: bytes) -> Chunk | None:
    """A chunk whose members have types of their own (content as a list of parts, ...)."""
    try:
        value = _decode_any(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    listed = value.get("choices")
    choices = None
    if isinstance(listed, list):
        choices = [_odd_choice(choice) for choice in listed if isinstance(choice, dict)]
    return Chunk(
        choices=choices,
        usage=msgspec.Raw(msgspec.json.encode(value.get("usage"))),
        error=msgspec.Raw(msgspec.json.encode(value.get("error"))),
        service_tier=_text_or_none(value.get("service_tier")),
        x_groq=msgspec.Raw(msgspec.json.encode(value.get("x_groq"))),
    )


def _odd_choice(choice: dict[str, Any]) -> ChunkChoice:
    delta = choice.get("delta")
    said = [v for k, v in delta.items() if k != "role"] if isinstance(delta, dict) else []
    said.append(choice.get("text"))
    index, finish = choice.get("index"), choice.get("finish_reason")
    return ChunkChoice(
        index=index if isinstance(index, int) else 0,
        finish_reason=str(finish) if finish else None,
        text="?" * max(1, content_bytes(said)) if any(said) else None,
        delta=Delta(images=_SHOWN) if _has_picture(delta) else None,
        error=msgspec.Raw(msgspec.json.encode(choice.get("error"))),
    )


def _has_picture(delta: Any) -> bool:
    """In a member of its own, or among the parts of its content."""
    if not isinstance(delta, dict):
        return False
    content = delta.get("content")
    parts = content if isinstance(content, list) else ()
    kinds = [_text_or_none(part.get("type")) or "" for part in parts if isinstance(part, dict)]
    return bool(delta.get("images")) or any("image" in kind for kind in kinds)


class _AnswerChoice(msgspec.Struct, gc=False):
    finish_reason: str | None = None
    error: msgspec.Raw = _NULL
    usage: msgspec.Raw = _NULL

    def is_failed(self) -> bool:
        return self.finish_reason == "error" or _is_given(self.error)


class _Answer(msgspec.Struct, gc=False):
    choices: list[_AnswerChoice] | None = None
    data: msgspec.Raw = _NULL
    usage: msgspec.Raw = _NULL
    error: msgspec.Raw = _NULL
    service_tier: str | None = None
    x_groq: msgspec.Raw = _NULL

    def read_usage(self) -> dict[str, Any] | None:
        """Its own, that of its last choice, or Groq's."""
        raw = usage_bytes(self.usage)
        if raw is None and self.choices:
            raw = usage_bytes(self.choices[-1].usage)
        return decode_usage(groq_usage_bytes(self.x_groq) if raw is None else raw)


class AnswerSummary(NamedTuple):
    """What a whole answer says of itself."""

    usage: dict[str, Any] | None
    finish_reason: str | None = None
    tier: str | None = None


_decode_answer = msgspec.json.Decoder(_Answer).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def parse_answer(body: bytes) -> AnswerSummary:
    """Usage, finish reason and service tier; raises `InvalidResponse` if it is no JSON object.

    So does one without `choices` and, as embeddings come, `data`. An error under a status of
    success is one all the same, in a choice too, and is judged by what it says
    (`backends.reported`); its text stays here. An empty list of choices is a `StreamError`.
    """
    if not body.isascii() and not _is_utf8(body):  # the decoder does not look into values
        raise InvalidResponse("the answer is not UTF-8")
    try:
        answer = _decode_answer(body)
    except msgspec.ValidationError:
        return _parse_odd(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        mended = whole_characters(body)
        if mended is None:
            raise InvalidResponse("the answer is not JSON") from error
        return parse_answer(mended)
    if answer.error is not _NULL and _is_given(answer.error):
        raise read_error(body)
    if not answer.choices and answer.data is _NULL:
        raise _without_choices(body, empty=answer.choices is not None)
    first = answer.choices[0] if answer.choices else _AnswerChoice()
    # Where the first is whole, an answer is one.
    if first.is_failed() and all(choice.is_failed() for choice in answer.choices or ()):
        raise _failed_choices(body)
    return AnswerSummary(
        answer.read_usage(),
        printable_text(first.finish_reason),
        printable_text(answer.service_tier),
    )


def _parse_odd(body: bytes) -> AnswerSummary:
    try:
        value = _decode_object(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reported = error_in(body)  # Google sends a list of one
        raise reported or InvalidResponse("the answer is not a JSON object") from error
    if msgspec.json.encode(value.get("error")) not in _EMPTY:
        raise read_error(body)
    choices = value.get("choices")
    if not choices and value.get("data") is None:
        raise _without_choices(body, empty=choices is not None)
    if error_in(body) is not None:
        raise _failed_choices(body)
    tier = _text_or_none(value.get("service_tier"))
    usage = usage_bytes(msgspec.Raw(msgspec.json.encode(value.get("usage"))))
    return AnswerSummary(decode_usage(usage), tier=printable_text(tier))


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _without_choices(body: bytes, *, empty: bool) -> BackendError:
    """An answer of nothing: the provider says that it made none, or it is no answer."""
    reported = error_in(body)
    if reported is not None:
        return reported
    if empty:
        return StreamError("the answer has no choices")
    return InvalidResponse("the answer has no choices")


def _failed_choices(body: bytes) -> BackendError:
    """Return what was said or counted before the failure is the provider's to charge for."""
    reported, value = error_in(body) or StreamError("the answer failed"), _decode_object(body)
    usage = value.get("usage")
    has_output = isinstance(usage, dict) and count_of(usage.get("completion_tokens"))
    counted = usage if has_output else None
    if counted is None and not any(_says(choice) for choice in value["choices"]):
        return reported
    broken = UpstreamBroken(str(reported))
    broken.usage = counted
    return broken


def _says(choice: Any) -> bool:
    message = choice.get("message") if isinstance(choice, dict) else None
    said = [v for k, v in message.items() if k != "role"] if isinstance(message, dict) else []
    return any(said) or (isinstance(choice, dict) and bool(choice.get("text")))


def printable_text(text: str | None) -> str | None:
    """A target's word as records keep it: no database and no log takes every text."""
    if text is None or (len(text) <= WORD_LIMIT and text.isprintable()):
        return text
    return "".join(name if name.isprintable() else "?" for name in text[:WORD_LIMIT])


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None
