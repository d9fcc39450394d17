"""Finds usage in an answer that cannot be relayed as what it should be.

A target that ignores `stream` answers in one piece, another one streams where nobody asked for it;
some write UTF-16, a mark of their byte order, a second document, a document a line, or events
without the empty line between them. They bill such answers, also where nothing tells how much.
"""

import json
from typing import Any

from backends.errors import BackendError
from backends.json_mending import mend_json
from backends.sse import EventSplitter, data_spans, join_data
from backends.usage_bytes import decode_told
from backends.usage_places import usage_in

LIMIT_BYTES = 4 * 1024 * 1024


def usage_of_unreadable(body: bytes) -> dict[str, Any] | None:
    """Return the usage that the bytes tell; of a stream the last one. None without any."""
    if len(body) > LIMIT_BYTES:
        return None
    if body.lstrip()[:6] in (b"data: ", b"data:{", b"event:"):
        return _usage_of_events(body) or _usage_of_lines(body)
    try:
        text = body.decode(json.detect_encoding(body)).lstrip("\ufeff \t\r\n")
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return (usage_in(value) if isinstance(value, dict) else None) or _usage_of_lines(body)


def with_usage_of(error: BackendError, body: bytes) -> BackendError:
    """Return the error with the usage that the unreadable bytes tell, and that they are an answer.

    A page of a server on the way (HTML) is none.
    """
    error.usage = usage_of_unreadable(body)
    error.hides_output = error.hides_output or body.lstrip()[:1] not in (b"", b"<")
    return error


def _usage_of_lines(body: bytes) -> dict[str, Any] | None:
    found = None
    for line in body.splitlines():
        value = decode_told(line.removeprefix(b"data:"))
        found = (None if value is None else usage_in(value)) or found
    return found


def _usage_of_events(body: bytes) -> dict[str, Any] | None:
    try:
        events = EventSplitter().feed(body + b"\n\n")
    except BackendError:
        return None
    found = None
    for event in events:
        payload = join_data(event, data_spans(event) or [])
        value = decode_told(payload) or decode_told(mend_json(payload) or b"")
        found = (None if value is None else usage_in(value)) or found
    return found
