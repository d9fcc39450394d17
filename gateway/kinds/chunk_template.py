"""Templates of a stream's chunks, which differ only in plain text and running usage.

Once a chunk was fully read, others with the same bytes around a text and a usage of integers have
the same meaning, and are not decoded. A chunk that differs elsewhere, or whose text has escapes,
non-ASCII or control characters, gives `None` and is fully read. The same holds for chunks without
usage (`WordFrames`), which may have padding of varying length.
"""

import re
from typing import NamedTuple

from backends.chunks import read_chunk
from backends.text_length import ENCODED_FROM

LIMIT_BYTES = 4096  # around the text; a longer chunk has more than text
_KEY = b'"content":"'
_USAGE = b',"usage":'
_NUMBER = rb"(?:0|[1-9][0-9]{0,14})"
_COUNTS = re.compile(rb'\{"[a-z_]+":%b(?:,"[a-z_]+":%b)*\}' % (_NUMBER, _NUMBER)).fullmatch
_END = b"}\n\n"
_new = tuple.__new__  # a named tuple built without its keyword layer, in half the time
_PLAIN = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')


class TemplateMatch(NamedTuple):
    """The bytes of an event's text, its raw usage, and the event without the usage."""

    said_bytes: int
    usage: bytes
    event: bytes


class ChunkTemplate(NamedTuple):
    """The constant bytes of a chunk. `head` ends where the text begins.

    `middle` reaches from the text's closing quote to the opening brace of the usage.
    """

    head: bytes
    middle: bytes

    def match_event(self, event: bytes) -> TemplateMatch | None:
        head, middle = self
        if not event.startswith(head) or event[-3:] != _END:
            return None
        begin = len(head)
        end = event.find(b'"', begin)
        start = end + len(middle)
        if end <= begin or event[end:start] != middle or event[begin:end].translate(None, _PLAIN):
            return None
        usage = event[start:-3]
        if _COUNTS(usage) is None:
            return None
        rest = event[: start - len(_USAGE)] + _END
        return _new(TemplateMatch, (end - begin, usage, rest))


def likeness_of(event: bytes, read: TemplateMatch) -> ChunkTemplate | None:
    """Return the template of a fully read event if matching it gives the same result."""
    begin = event.find(_KEY) + len(_KEY)
    end = event.find(b'"', begin)
    if begin < len(_KEY) or end < begin:
        return None
    tail = len(event) - len(read.usage) - len(_END)
    if begin + tail - end > LIMIT_BYTES:  # the template is kept as long as the stream lasts
        return None
    found = ChunkTemplate(event[:begin], event[end:tail])
    return found if found.middle.endswith(_USAGE) and found.match_event(event) == read else None


# The beginning of a chunk's text, in any of the members that are read.
_WORDS = re.compile(rb'"(?:content|reasoning_content|reasoning|text)": ?"(?!")')
_PADDING = re.compile(rb'"obfuscation": ?"')  # OpenAI's padding, which hides the sizes of texts
_PROBE = b"a word of the frame alone"
_TRIES = 4  # chunks in a row without a match; then all are fully read


class WordFrame(NamedTuple):
    """The constant bytes around the text of a chunk that has no other content.

    `padded`: after `tail` comes padding, which is the last member.
    """

    head: bytes
    tail: bytes
    padded: bool

    def text_of(self, payload: bytes) -> bytes | None:
        """Return the encoded text of a chunk that matches the frame, None for another chunk."""
        head, tail, padded = self
        if not payload.startswith(head):
            return None
        begin = len(head)
        if not padded:
            text = payload[begin : -len(tail)]
            alike = len(payload) >= begin + len(tail) and payload.endswith(tail)
            return text if alike and _is_one_text(text) else None
        end = payload.find(tail, begin)
        text, padding = payload[begin:end], payload[end + len(tail) : -2]
        alike = end >= 0 and payload.endswith(b'"}') and padding.isalnum()
        return text if alike and _is_one_text(text) else None


class WordFrames:
    """The frame of the last chunk that was fully read."""

    __slots__ = ("_frame", "_tries")

    def __init__(self) -> None:
        self._frame: WordFrame | None = None
        self._tries = 0

    def text_of(self, payload: bytes) -> bytes | None:
        """Return the encoded text of a chunk that has no other content, if the frame shows it."""
        text = None if self._frame is None else self._frame.text_of(payload)
        if text is not None:
            self._tries = 0
        return text

    def learn(self, payload: bytes) -> None:
        """Learn the frame of a chunk that has text and no unknown content."""
        if self._tries < _TRIES:
            self._tries += 1
            self._frame = frame_of(payload)

    def forget(self) -> None:
        """Drop the frame, because an event changed state that later chunks carry."""
        self._frame = None


def is_plain(text: bytes) -> bool:
    """Return whether encoded text is as long as its decoded form, and can hold no picture."""
    return 0 < len(text) <= ENCODED_FROM and not text.translate(None, _PLAIN)


def frame_of(payload: bytes) -> WordFrame | None:
    """Return the frame of a chunk, if replacing its text changes nothing else that is read."""
    found = None if b"\\" in payload else _WORDS.search(payload)
    if found is None or _WORDS.search(payload, found.end()) is not None:
        return None
    head, tail = payload[: found.end()], payload[payload.find(b'"', found.end()) :]
    if len(head) + len(tail) > LIMIT_BYTES:
        return None
    chunk = read_chunk(head + _PROBE + tail)
    choices = [] if chunk is None or chunk.usage_bytes() or chunk.error_bytes() else chunk.choices
    if not choices or len(choices) > 1 or choices[0].finish_reason is not None:
        return None
    if choices[0].said() != (len(_PROBE), len(_PROBE)):
        return None
    padding = _PADDING.search(tail)
    if padding is not None and tail[padding.end() : -2].isalnum() and tail.endswith(b'"}'):
        return WordFrame(head, tail[: padding.end()], padded=True)
    return WordFrame(head, tail, padded=False)


def _is_one_text(text: bytes) -> bool:
    """Return whether the bytes are the inside of one JSON string."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b'"' not in text and not text.endswith(b"\\")
