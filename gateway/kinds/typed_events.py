"""Relay of streams whose events have a type, like OpenAI's for speech and pictures.

The end of the answer is withheld until the settle is durable, as in every relay.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from backends.chunk_choices import NULL
from backends.sse import data_spans, join_data
from backends.usage_bytes import usage_bytes
from gateway.kinds.relay import ByteRelay
from gateway.kinds.sound_flow import text_of_sound

T = TypeVar("T")


class TypedEvent(msgspec.Struct, gc=False):
    """The members of an event that are read; binary data are not decoded."""

    type: str | None = None
    usage: msgspec.Raw = NULL
    error: Any = None
    size: Any = None
    quality: Any = None
    audio: msgspec.Raw = NULL
    b64_json: msgspec.Raw = NULL
    url: msgspec.Raw = NULL


_decode = msgspec.json.Decoder(TypedEvent).decode


class TypedRelay(ByteRelay):
    """The relay of a stream with `choices` parts, each of which ends with an event `done`.

    Events of other types are content. The target's usage is always shown to the client.
    """

    __slots__ = ("_done", "_sound_bytes", "_sound_bytes_per_s")

    last_word = b""  # the event that ends it

    def __init__(self, done: str, *, choices: int = 1, sound_bytes_per_s: int = 0) -> None:
        """Create the relay; `sound_bytes_per_s` is the rate of sound in the events, or 0."""
        super().__init__(hide_usage=False, choices=choices)
        self._done = done
        self._sound_bytes, self._sound_bytes_per_s = 0, sound_bytes_per_s

    def _event(self, event: bytes, spans: list[tuple[int, int]] | None) -> bytes:
        spans = spans or data_spans(event)
        found = read_event(_decode, event, spans)
        if found is None or found.type is None:
            return super()._event(event, spans)
        told, ends = usage_bytes(found.usage), found.type == self._done
        if told is not None or ends:
            self._told.take_event(event, told, final=ends)
        if self._tells_failure(found):
            raise self._reported_error(join_data(event, spans or []))
        self._observe_typed(found)
        return event

    def _tells_failure(self, event: TypedEvent) -> bool:
        """Return whether the answer as a whole failed."""
        return bool(event.error) or event.type == "error"

    def _observe_typed(self, event: TypedEvent) -> None:
        self.content_events += 1
        self.first_content = True
        if event.type != self._done and event.usage is NULL:
            self._told.pass_words()
        if self._sound_bytes_per_s:
            self._sound_bytes += len(memoryview(event.audio)) * 3 // 4  # of Base64
            self.said_bytes = text_of_sound(self._sound_bytes, self._sound_bytes_per_s)
        if event.type == self._done:
            self._finished.add(len(self._finished))
            ended = len(self._finished) >= self._choices
            self._told.end(is_whole=ended)
            self._withholding = self._withholding or ended


def read_event(
    decode: Callable[[bytes], T], event: bytes, spans: list[tuple[int, int]] | None
) -> T | None:
    """Return the event as `decode` reads it; None if the base relay must handle it."""
    if not spans:
        return None
    try:
        return decode(join_data(event, spans))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
