"""Usage in an answer that cannot be relayed, because its format is not the expected one.

A target may ignore `stream`, or stream unasked; some send UTF-16, a byte-order mark, a second
document, a document per line, or events without the empty line between them. Targets bill such
answers, even if they report no usage. Events of Messages report usage in parts, so they are read as
chat.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

from backends.errors import BackendError
from backends.json_mending import mend_json
from backends.messages_answer import MessagesStream
from backends.sse import EventSplitter, data_spans, join_data
from backends.usage_bytes import decode_told
from backends.usage_places import TIER, billed_usage_in, usage_in, with_tier

LIMIT_BYTES = 4 * 1024 * 1024
_MESSAGES: Final = b'"message_start"'


def usage_of_unreadable(body: bytes) -> dict[str, Any] | None:
    """Return the usage in the bytes, the last one of a stream, `None` without any."""
    if len(body) > LIMIT_BYTES:
        return None
    if body.lstrip()[:6] in (b"data: ", b"data:{", b"event:"):
        return _usage_of_events(body) or _usage_of_lines(body)
    try:
        text = body.decode(json.detect_encoding(body)).lstrip("\ufeff \t\r\n")
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return (billed_usage_in(value) if isinstance(value, dict) else None) or _usage_of_lines(body)


def with_usage_of(error: BackendError, body: bytes) -> BackendError:
    """Return the error with the usage in the unreadable bytes, marked as an answer.

    An HTML page of a proxy is not an answer.
    """
    error.usage = usage_of_unreadable(body)
    error.hides_output = error.hides_output or body.lstrip()[:1] not in (b"", b"<")
    return error


def _usage_of_lines(body: bytes) -> dict[str, Any] | None:
    return _last_usage(decode_told(line.removeprefix(b"data:")) for line in body.splitlines())


def _usage_of_events(body: bytes) -> dict[str, Any] | None:
    try:
        events = EventSplitter().feed(_as_chat(body) + b"\n\n")
    except BackendError:
        return None
    return _last_usage(map(_told_by, events))


def _as_chat(body: bytes) -> bytes:
    """Return Messages events as chat events, and others unchanged."""
    if _MESSAGES not in body:
        return body
    told = b"".join(line + b"\n\n" for line in body.splitlines() if line.startswith(b"data:"))
    return MessagesStream(created_s=0, native=False).feed(told)


def _told_by(event: bytes) -> dict[str, Any] | None:
    payload = join_data(event, data_spans(event) or [])
    return decode_told(payload) or decode_told(mend_json(payload) or b"")


def _last_usage(told: Iterable[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return the last usage with the last tier, which an earlier chunk may have named."""
    found: dict[str, Any] | None = None
    tier: Any = None
    for value in told:
        if value is not None:
            found, tier = usage_in(value) or found, value.get(TIER) or tier
    return with_tier(found, tier)
