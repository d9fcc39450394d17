"""A stream's chunks are alike: what differs is a piece of plain text and the running usage.

Once one chunk was read in full, those that have its bytes around a text and a usage of whole
numbers mean the same around them, and need no decoder. Whatever differs in more than that, or has
escapes, other alphabets or control characters in its text, is `None` here and is read in full.
"""

import re
from typing import NamedTuple

LIMIT_BYTES = 4096  # around the text: whatever is longer has more than text in it
_KEY = b'"content":"'
_USAGE = b',"usage":'
_NUMBER = rb"(?:0|[1-9][0-9]{0,14})"
_COUNTS = re.compile(rb'\{"[a-z_]+":%b(?:,"[a-z_]+":%b)*\}' % (_NUMBER, _NUMBER)).fullmatch
_END = b"}\n\n"
_new = tuple.__new__  # a named tuple built without its keyword layer: half the time
_PLAIN = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')


class TemplateMatch(NamedTuple):
    """How long its text is, its usage as it came, and the event without it."""

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
    """Of an event that was read in full, if taking it comes to the same."""
    begin = event.find(_KEY) + len(_KEY)
    end = event.find(b'"', begin)
    if begin < len(_KEY) or end < begin:
        return None
    tail = len(event) - len(read.usage) - len(_END)
    if begin + tail - end > LIMIT_BYTES:  # it would be held for as long as its stream lasts
        return None
    found = ChunkTemplate(event[:begin], event[end:tail])
    return found if found.middle.endswith(_USAGE) and found.match_event(event) == read else None
