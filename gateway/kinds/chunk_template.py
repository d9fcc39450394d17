"""A stream's chunks are alike: what differs is a piece of plain text and the running usage.

Once one chunk was read in full, those that have its bytes around a text and a usage of whole
numbers mean the same around them, and need no decoder. Whatever differs in more than that, or has
escapes, other alphabets or control characters in its text, is `None` here and is read in full.
The same holds without usage (`WordFrames`), where the sizes of chunks may be evened out besides.
"""

import re
from typing import NamedTuple

from backends.chunks import read_chunk
from backends.text_length import ENCODED_FROM

LIMIT_BYTES = 4096  # around the text: whatever is longer has more than text in it
_KEY = b'"content":"'
_USAGE = b',"usage":'
_NUMBER = rb"(?:0|[1-9][0-9]{0,14})"
_COUNTS = re.compile(rb'\{"[a-z_]+":%b(?:,"[a-z_]+":%b)*\}' % (_NUMBER, _NUMBER)).fullmatch
_END = b"}\n\n"
_new = tuple.__new__  # a named tuple built without its keyword layer: half the time
_PLAIN = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')


class TemplateMatch(NamedTuple):
    """The length of an event's text, its raw usage, and the event without the usage."""

    said_bytes: int
    usage: bytes
    event: bytes


class ChunkTemplate(NamedTuple):
    """`head` ends where the text begins; `middle` is from its quote to the usage's first brace."""

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
    if begin + tail - end > LIMIT_BYTES:  # it would be held for as long as its stream lasts
        return None
    found = ChunkTemplate(event[:begin], event[end:tail])
    return found if found.middle.endswith(_USAGE) and found.match_event(event) == read else None


# Where the words of a chunk begin, in any of the places that are read.
_WORDS = re.compile(rb'"(?:content|reasoning_content|reasoning|text)": ?"(?!")')
_PADDING = re.compile(rb'"obfuscation": ?"')  # OpenAI's, which evens out the sizes of events
_PROBE = b"a word of the frame alone"
_TRIES = 4  # chunks in turn that are like none before: then all are read in full


class WordFrame(NamedTuple):
    """Holds what stands around the words of a chunk that has nothing else to say.

    `padded`: behind `tail` comes padding, which is the last member.
    """

    head: bytes
    tail: bytes
    padded: bool

    def text_of(self, payload: bytes) -> bytes | None:
        """Return the encoded words of a chunk that is alike but for them; None of another one."""
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
    """The frame of a stream's last chunk that was looked through."""

    __slots__ = ("_frame", "_tries")

    def __init__(self) -> None:
        self._frame: WordFrame | None = None
        self._tries = 0

    def text_of(self, payload: bytes) -> bytes | None:
        """Return the encoded words of a chunk that has nothing else to say, if that is known."""
        text = None if self._frame is None else self._frame.text_of(payload)
        if text is not None:
            self._tries = 0
        return text

    def learn(self, payload: bytes) -> None:
        """Take a chunk that has words, and nothing in members without a name."""
        if self._tries < _TRIES:
            self._tries += 1
            self._frame = frame_of(payload)

    def forget(self) -> None:
        """Drop it: an event said something that goes on."""
        self._frame = None


def is_plain(text: bytes) -> bool:
    """Return whether encoded words are as long as they are decoded, and have no picture in them."""
    return 0 < len(text) <= ENCODED_FROM and not text.translate(None, _PLAIN)


def frame_of(payload: bytes) -> WordFrame | None:
    """Return the frame of a chunk's words, if other words there are read as all that it says."""
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
    """Return whether a string that was open before goes on behind it."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b'"' not in text and not text.endswith(b"\\")
