"""Server-sent events: splitting a byte stream, finding data, cutting out one member.

The splitter changes no byte: its events joined give its input. Line ends may be LF, CRLF or CR, a
comment is an event without data, and a segment may end at any byte. Cutting removes a chunk's
top-level `usage` member and keeps every other byte; equal text in strings or deeper objects is
content. An event has a size limit, so that an endless line cannot fill memory: half of that of a
whole answer, because an image comes in one event.
"""

import re
from itertools import takewhile
from typing import NoReturn

from backends.errors import UpstreamBroken

PLAIN_LIMIT_BYTES = 1024 * 1024  # bytes without a data field: no event is that long
EVENT_LIMIT_BYTES = 32 * 1024 * 1024  # a picture of 24 MB in base64: 4096 x 4096 as PNG

# Atomic groups: the CR of a CRLF must never count as a line end of its own.
_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]', re.DOTALL)
_HEAD_BYTES = 4096  # in which data begins, behind an event's name and id
_SPACE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


class EventSplitter:
    """A splitter of a byte stream into whole events, terminators included.

    It buffers at most one event, up to the limit, and searches each segment once.
    """

    __slots__ = ("_has_cr", "_limit", "_oversized", "rest")

    def __init__(self, limit_bytes: int = EVENT_LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self.rest = bytearray()  # bytes of an event that has not ended
        self._has_cr = False
        self._oversized = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the events that `chunk` completes.

        Raises `UpstreamBroken` above the size limit: earlier events are returned first, and the
        next call raises.
        """
        if self._oversized:
            self._raise()
        rest = self.rest
        if not rest and is_simple(chunk) and len(chunk) <= self._limit:
            return [chunk]
        # A line end of up to three bytes may begin in the part already searched.
        position = max(0, len(rest) - 3)
        data: bytes | bytearray = chunk
        if rest:
            rest += chunk
            data = rest
        self._has_cr = self._has_cr or b"\r" in chunk
        ends = _find_ends_any(data, position) if self._has_cr else _find_ends_lf(data, position)
        events, start = [], 0
        for end in ends:
            whole = end - start == len(data)
            events.append(bytes(data) if whole else bytes(data[start:end]))
            start = end
        if data is rest:
            del rest[:start]
        else:
            rest += data[start:]
        if max(len(rest), max(map(len, events), default=0)) > self._limit or _is_no_event(rest):
            self._oversized = True
            events = list(takewhile(lambda event: len(event) <= self._limit, events))
            if not events:
                self._raise()
        return events

    def _raise(self) -> NoReturn:
        limit = min(self._limit, PLAIN_LIMIT_BYTES) if _is_no_event(self.rest) else self._limit
        error = UpstreamBroken(f"an event is larger than {limit} bytes")
        error.hides_output = True
        raise error


def _is_no_event(rest: bytearray) -> bool:
    return len(rest) > PLAIN_LIMIT_BYTES and b"data:" not in rest[:_HEAD_BYTES]


def _find_ends_any(data: bytes | bytearray, position: int) -> list[int]:
    if data.find(b"\n", position) < 0 > data.find(b"\r", position):
        return []  # the middle of a picture, say: an expression takes ten times as long
    ends = [match.end() for match in _BLANK_LINE.finditer(data, position)]
    # With CRLF line ends, a CR at the end of a segment is half of one: its LF follows.
    if ends and ends[-1] == len(data) and data.endswith(b"\r\n\r"):
        ends.pop()
    return ends


def _find_ends_lf(data: bytes | bytearray, position: int) -> list[int]:
    ends = []
    while (position := data.find(b"\n\n", position) + 2) > 1:
        ends.append(position)
    return ends


def is_simple(event: bytes) -> bool:
    """Return whether the bytes are one whole event of one data line in the usual form."""
    return (
        event[:6] == b"data: "
        and event.find(b"\n") == len(event) - 2
        and event[-1] == 10
        and b"\r" not in event
    )


def data_spans(event: bytes) -> list[tuple[int, int]] | None:
    """Return the spans of the `data` lines' values; `None` if a line has no known field.

    With data, such a line is ignored, as the standard requires for unknown fields.
    """
    if is_simple(event):
        return [(6, len(event) - 2)]
    spans, known = [], True
    start = 3 if event.startswith(_BOM) else 0
    for line in event[start:].splitlines(keepends=True):
        end = start + len(line.rstrip(b"\r\n"))
        colon = line.find(b":")
        name = event[start:end] if colon < 0 else line[:colon]
        if name == b"data":
            value = end if colon < 0 else start + 5 + line.startswith(b"data: ")
            spans.append((value, end))
        elif name not in (b"", b"event", b"id", b"retry"):
            known = False
        start += len(line)
    return spans if spans or known else None


def join_data(event: bytes, spans: list[tuple[int, int]]) -> bytes:
    """Return the event's data as a client sees it: lines joined by one LF."""
    if len(spans) == 1:
        return event[spans[0][0] : spans[0][1]]
    return b"\n".join([event[start:end] for start, end in spans])


def cut_usage(event: bytes, value: bytes) -> bytes:
    """Return `event` without its top-level `usage` member, which is encoded as `value`."""
    at = event.rfind(b'"usage":')
    # The key occurs once in the event, followed by the member's value: the match is certain.
    # All other cases go to the scanner.
    if (
        event[at - 1] == 44
        and event.startswith(value, at + 8)
        and event.find(b'"usage"', 0, at) < 0
    ):
        return event[: at - 1] + event[at + 8 + len(value) :]
    spans = data_spans(event) or []
    for start, end in reversed(usage_members(join_data(event, spans))):
        event = _cut_span(event, spans, start, end)
        spans = data_spans(event) or []
    return event


def usage_members(payload: bytes) -> list[tuple[int, int]]:
    """Return the spans of every top-level `usage` member, each with one comma."""
    found: list[tuple[int, int]] = []
    depth, key_at, value_of, previous_comma = 0, -1, False, -1
    for token in _TOKEN.finditer(payload):
        start, mark = token.start(), token[0]
        if depth == 1 and key_at >= 0 and value_of and mark in (b",", b"}"):
            end = len(payload[:start].rstrip(_SPACE))
            if previous_comma >= 0:
                found.append((previous_comma, end))
            else:
                found.append((key_at, start + 1 if mark == b"," else end))
            key_at, value_of = -1, False
            if mark == b"," and not (found and found[-1][1] > start):
                previous_comma = start
        elif depth == 1 and mark == b",":
            previous_comma, key_at, value_of = start, -1, False
        elif depth == 1 and mark == b":" and key_at >= 0:
            value_of = True
        elif depth == 1 and mark == b'"usage"' and not value_of:
            key_at = start
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
    return found


def _cut_span(event: bytes, spans: list[tuple[int, int]], start: int, end: int) -> bytes:
    """Remove joined-data bytes [start, end) from the raw event, except line separators."""
    offset, pieces, position = 0, [], 0
    for low, high in spans:
        first = min(max(start - offset, 0), high - low)
        last = min(max(end - offset, 0), high - low)
        pieces.append(event[position : low + first])
        position = low + last
        offset += high - low + 1
    pieces.append(event[position:])
    return b"".join(pieces)
