"""Relay of a streamed transcript: OpenAI's own events, or vLLM's chunks.

OpenAI's stream ends with `transcript.text.done`, which has the usage; vLLM's ends like chat. The
end of the answer is withheld until the settle is durable, as in every relay.
"""

from typing import Any

import msgspec

from backends.chunk_choices import NULL
from backends.sse import data_spans, join_data
from backends.text_length import text_bytes
from backends.usage_bytes import usage_bytes
from gateway.kinds.relay import ByteRelay
from gateway.kinds.typed_events import read_event

_DELTA, _DONE = "transcript.text.delta", "transcript.text.done"


class _Event(msgspec.Struct, gc=False):
    type: str | None = None
    delta: Any = None
    text: Any = None
    usage: msgspec.Raw = NULL
    error: Any = None


_decode = msgspec.json.Decoder(_Event).decode


class TranscriptRelay(ByteRelay):
    """The relay of one answer; the target's usage is always shown to the client."""

    __slots__ = ()

    last_word = b""  # the event with the whole text

    def __init__(self) -> None:
        super().__init__(hide_usage=False)

    def _event(self, event: bytes, spans: list[tuple[int, int]] | None) -> bytes:
        spans = spans or data_spans(event)
        found = read_event(_decode, event, spans)
        if found is None or found.type is None:
            return super()._event(event, spans)
        told, ends = usage_bytes(found.usage), found.type == _DONE
        if told is not None or ends:
            self._told.take_event(event, told, final=ends)
        if found.error or found.type == "error":
            raise self._reported_error(join_data(event, spans or []))
        if found.type == _DELTA and isinstance(found.delta, str) and found.delta:
            self.content_events += 1
            self.first_content = True
            self.said_bytes += text_bytes(found.delta)
            if told is None:
                self._told.pass_words()
        elif found.type == _DONE:
            if isinstance(found.text, str):  # the whole text, as some send no deltas
                self.said_bytes = max(self.said_bytes, text_bytes(found.text))
            self._told.end()
            self._withholding = True
            self._finished.add(0)
        return event
