"""The reader of OpenAI-style answers, whole or in chunks: usage, endings, first content.

Only members for billing and timing are decoded, and usage stays encoded until it is needed. Members
of unusual types (content as a list of parts, ...) take a slower path and never fail. An answer that
is not a JSON object fails.
"""

import re
from typing import Any, NamedTuple

import msgspec

from backends.charged_errors import charged_error
from backends.chunk_choices import EMPTY, NULL, ChunkChoice, is_given, odd_choice
from backends.error_shapes import words_error
from backends.errors import BackendError, InvalidResponse, StreamError
from backends.json_mending import mend_json
from backends.reported import error_in, is_error, read_error
from backends.unreadable_answers import with_usage_of
from backends.usage_bytes import decode_object, decode_told, decode_usage, usage_bytes
from backends.usage_places import counts_output, may_tell_more, usage_in

_LONGEST_EMPTY = 16  # bytes of data in which there may be nothing
WORD_LIMIT = 64  # characters of a target's word that are kept
_OUTPUTS = ("completion_tokens", "output_tokens")
_ERROR_EVENT = re.compile(rb"(?:^|[\r\n])event: ?error[\r\n]")


class Chunk(msgspec.Struct, gc=False):
    """The members read from one chunk. `usage` and `error` stay encoded."""

    choices: list[ChunkChoice] | None = None
    usage: msgspec.Raw = NULL
    error: msgspec.Raw = NULL
    service_tier: str | None = None

    def usage_bytes(self) -> bytes | None:
        """Return the encoded usage, or `None` when there is none."""
        return None if self.usage is NULL else usage_bytes(self.usage)

    def error_bytes(self) -> bytes | None:
        """Return the encoded error that an upstream reports in its stream, or `None`."""
        if self.error is NULL:
            return None
        value = bytes(self.error)
        return None if value in EMPTY else value


_decode_chunk = msgspec.json.Decoder(Chunk).decode
_decode_any = msgspec.json.Decoder().decode


def read_chunk(payload: bytes) -> Chunk | None:
    """Decode one event's data; `None` when it is not a JSON object."""
    try:
        return _decode_chunk(payload)
    except msgspec.ValidationError:
        return _read_odd(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        mended = mend_json(payload)
        return None if mended is None else read_chunk(mended)


def tells_error(event: bytes, payload: bytes, *, is_first: bool = False) -> bool:
    """Return whether an event without choices and without `error` member is an error.

    Older engines send the error itself (`object` or `type` is `error`); others name the event.
    `is_first`: before any content, where an error's shape alone suffices.
    """
    if _ERROR_EVENT.search(event):
        return True
    found = decode_object(payload) or {}
    if "error" in (found.get("object"), found.get("type")):
        return True
    return is_first and is_error(found)


def _read_odd(payload: bytes) -> Chunk | None:
    """Return a chunk whose members have unusual types (content as a list of parts, ...)."""
    try:
        value = _decode_any(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    listed = value.get("choices")
    choices = None
    if isinstance(listed, list):
        choices = [odd_choice(choice) for choice in listed if isinstance(choice, dict)]
    return Chunk(
        choices=choices,
        usage=msgspec.Raw(msgspec.json.encode(value.get("usage"))),
        error=msgspec.Raw(msgspec.json.encode(value.get("error"))),
        service_tier=_text_or_none(value.get("service_tier")),
    )


class _AnswerChoice(msgspec.Struct, gc=False):
    finish_reason: str | None = None
    error: msgspec.Raw = NULL
    message: msgspec.Raw = NULL

    def is_failed(self) -> bool:
        if self.finish_reason == "error" or is_given(self.error):
            return True
        if self.finish_reason is not None or b'"error"' not in bytes(self.message):
            return False
        return words_error(decode_object(bytes(self.message))) is not None


class _Answer(msgspec.Struct, gc=False):
    choices: list[_AnswerChoice] | None = None
    data: msgspec.Raw = NULL
    usage: msgspec.Raw = NULL
    error: msgspec.Raw = NULL
    service_tier: str | None = None


class AnswerSummary(NamedTuple):
    """The members read from a whole answer."""

    usage: dict[str, Any] | None
    finish_reason: str | None = None
    tier: str | None = None


_decode_answer = msgspec.json.Decoder(_Answer).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def parse_answer(body: bytes) -> AnswerSummary:
    """Return usage, finish reason and service tier of a whole answer.

    Raises `InvalidResponse` for bytes that are not a JSON object, or have neither `choices` nor (as
    embeddings) `data`. An error under a success status is raised by its content
    (`backends.reported`), also in a choice; its text is not passed on. An empty list of choices
    raises `StreamError`.
    """
    if not body.isascii() and not _is_utf8(body):  # the decoder does not look into values
        raise with_usage_of(InvalidResponse("the answer is not UTF-8"), body)
    try:
        answer = _decode_answer(body)
    except msgspec.ValidationError:
        return _parse_odd(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        mended = mend_json(body)
        if mended is None:
            raise with_usage_of(InvalidResponse("the answer is not JSON"), body) from error
        return parse_answer(mended)
    if answer.error is not NULL and is_given(answer.error):
        raise charged_error(read_error(body), decode_object(body))
    if not answer.choices and _says_nothing(answer.data, body):
        raise _without_choices(body, empty=answer.choices is not None)
    first = answer.choices[0] if answer.choices else _AnswerChoice()
    # An answer is valid if its first choice is complete.
    if first.is_failed() and all(choice.is_failed() for choice in answer.choices or ()):
        raise error_in(body) or StreamError("the answer failed")
    raw = usage_bytes(answer.usage)
    elsewhere = raw is None or may_tell_more(body, raw)
    return AnswerSummary(
        usage_in(decode_told(body) or {}) if elsewhere else decode_usage(raw),
        printable_text(first.finish_reason),
        printable_text(answer.service_tier),
    )


def _says_nothing(data: msgspec.Raw, body: bytes) -> bool:
    """Return whether `data` is no answer; an empty list is one, unless there is an error.

    Data may be megabytes, so only short ones are checked.
    """
    if len(memoryview(data)) > _LONGEST_EMPTY:
        return False
    short = bytes(data).translate(None, b" \t\r\n")
    return short in EMPTY and (short != b"[]" or error_in(body) is not None)


def _parse_odd(body: bytes) -> AnswerSummary:
    try:
        value = _decode_object(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reported = error_in(body)  # Google sends a list of one
        raise reported or InvalidResponse("the answer is not a JSON object") from error
    if msgspec.json.encode(value.get("error")) not in EMPTY:
        raise charged_error(read_error(body), value)
    choices = value.get("choices")
    if not choices and value.get("data") is None:
        raise _without_choices(body, empty=choices is not None)
    reported = error_in(body)
    if reported is not None:
        raise reported
    tier = _text_or_none(value.get("service_tier"))
    return AnswerSummary(usage_in(decode_told(body) or value), tier=printable_text(tier))


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _without_choices(body: bytes, *, empty: bool) -> BackendError:
    """Return the error for an answer without choices, marked with what may be charged."""
    reported = error_in(body)
    if reported is not None:
        return reported
    found = decode_object(body)
    error = StreamError if empty or _tells_none(found) else InvalidResponse
    return charged_error(error("the answer has no choices"), found)


def _tells_none(found: dict[str, Any] | None) -> bool:
    """Return whether choices are null (Go's empty list) and no output is counted."""
    if found is None or found.get("choices", found) is not None:
        return False
    usage = usage_in(found) or {}
    return 0 in map(usage.get, _OUTPUTS) and not counts_output(usage)


def printable_text(text: str | None) -> str | None:
    """Return a target's text as stored: printable and limited, for databases and logs."""
    if text is None or (len(text) <= WORD_LIMIT and text.isprintable()):
        return text
    return "".join(name if name.isprintable() else "?" for name in text[:WORD_LIMIT])


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None
