"""Relay of a streamed answer of an own engine, which reports usage in every chunk."""

from typing import Any

from backends.chunk_choices import ChunkChoice
from backends.sse import EVENT_LIMIT_BYTES, cut_usage
from backends.usage_bytes import read_counts, sum_running
from gateway.kinds.chunk_template import ChunkTemplate, TemplateMatch, likeness_of
from gateway.kinds.relay import ByteRelay
from gateway.kinds.stream_usage import check_usage

PLAIN_CHUNK_BYTES = 2048  # longer chunks are searched for text and usage in unknown members


class EventRelay(ByteRelay):
    """A relay that removes the running `usage` member from every chunk.

    vLLM's running usage counts the output of one choice (and the input of one prompt) at a time. So
    the last figure of every choice is kept, and they are summed until the final chunk has the
    total.
    """

    __slots__ = ("_like", "_n", "_running")

    def __init__(
        self, hide_usage: bool, *, choices: int = 1, n: int = 1, keep_running: bool = False
    ) -> None:
        """Create the relay; `n` is the number of choices per prompt.

        `keep_running`: the client requested running usage.
        """
        super().__init__(hide_usage, choices=choices, keep_running=keep_running)
        self._n = max(1, n)
        self._like: ChunkTemplate | None = None  # template of the last chunk that was fully read
        self._running: dict[int, bytes] = {}

    def feed(self, chunk: bytes) -> bytes:
        if self._like is not None and not self._withholding and not self._splitter.rest:
            taken = self._like.match_event(chunk)
            if taken is not None and self.error is None and len(chunk) <= EVENT_LIMIT_BYTES:
                return self._took(taken)
        return super().feed(chunk)

    @property
    def usage(self) -> dict[str, Any] | None:
        if self._told.final or not self._running:
            return self._told.last
        return sum_running(self._running, self._n)

    @property
    def counts(self) -> tuple[int, int] | None:
        if self._choices == 1 and not self.usage_final and self._running:  # every chunk has it
            return read_counts(self._running[0]) or super().counts
        return super().counts

    def _event(self, event: bytes, spans: list[tuple[int, int]] | None) -> bytes:
        """Relay one event by the template; a delayed gateway gets several in one segment."""
        if self._like is not None and not self._withholding:
            taken = self._like.match_event(event)
            if taken is not None:
                return self._took(taken)
        return super()._event(event, spans)

    def _is_plain(self, payload: bytes) -> bool:
        return len(payload) <= PLAIN_CHUNK_BYTES

    def _took(self, taken: TemplateMatch) -> bytes:
        said, self._running[0], event = taken
        self.said_bytes += said
        self.content_events += 1
        return event

    def _usage(self, event: bytes, choices: list[ChunkChoice] | None, raw: bytes) -> bytes:
        if not choices:
            return super()._usage(event, choices, raw)
        if 0 <= (index := choices[0].index) < self._choices:
            self._running[index] = check_usage(raw)
        if self._keep_running:
            return event
        shown = cut_usage(event, raw)
        if self._choices == 1 == len(choices) and not index and not choices[0].finish_reason:
            self._like = likeness_of(event, TemplateMatch(choices[0].said()[0], raw, shown))
        return shown
