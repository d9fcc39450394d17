"""Relaying a streamed answer: what may leave at once, what waits for the books, what was used.

Content leaves as it comes. The event that ends the answer (the last choice's finish, the usage
chunk or `[DONE]`) and all that follows it is withheld until the settle record is durable, so
that nobody holds a finished answer without its row. With several choices the finish of one goes
on while others still speak. Nothing here waits: `feed` takes a segment and returns bytes.

`EventRelay` is for own engines, which report usage in every chunk because the gateway asks for
it: that member is cut out. `ByteRelay` is for APIs: whole events go on untouched, but for usage
that the client did not ask for, and for empty data, in which clients look for JSON. An answer that
ends without `[DONE]` gets it: some clients take one without it for broken off, and ask again.
A stream is broken by an error event, data that is no JSON object, an end without an ending, or an
ending without anything before it; what was good goes first, `error` and the next call tell of it.
"""

from typing import Any

import msgspec

from backends.chunks import (
    Chunk,
    ChunkChoice,
    parse_answer,
    printable_text,
    read_chunk,
    tells_error,
    unknown_bytes,
)
from backends.errors import BackendError, InvalidResponse, UpstreamBroken
from backends.reported import error_in, error_in_events, read_error
from backends.sse import (
    EVENT_LIMIT_BYTES,
    EventSplitter,
    cut_usage,
    data_spans,
    is_simple,
    join_data,
)
from backends.usage_bytes import decode_usage, read_counts, sum_running
from gateway.kinds.chunk_template import ChunkTemplate, TemplateMatch, likeness_of

__all__ = ["ByteRelay", "EventRelay", "error_event", "parse_answer"]

EARLIER_LIMIT = 3  # figures of usage that are kept beside the last
WITHHELD_LIMIT_BYTES = 4 * 1024 * 1024  # behind the event that ends the answer
USAGE_LIMIT_BYTES = 64 * 1024

_Spans = list[tuple[int, int]]


class ByteRelay:
    """For APIs: events pass untouched; usage that the client did not ask for is left out.

    It stands in a chunk of its own, or beside a choice, as some APIs report it. Beside a choice
    that goes on it is a running figure and no ending. What a stream can hold here is an event on
    its way in (32 MiB at most), the one that ends it (as much), and 4 MiB that come behind that.
    """

    __slots__ = (
        "_choices",
        "_earlier",
        "_ending_bytes",
        "_failed",
        "_finished",
        "_hide_usage",
        "_splitter",
        "_spoke",
        "_started",
        "_usage_raw",
        "_withheld",
        "_withholding",
        "complete",
        "content_events",
        "error",
        "finish_reason",
        "first_content",
        "said_bytes",
        "shown",
        "tier",
        "usage_final",
    )

    last_word = b"data: [DONE]\n\n"

    def __init__(self, hide_usage: bool, *, choices: int = 1) -> None:
        """`choices`: how many the answer will have (`n` x prompts)."""
        self.complete = False
        self.content_events = 0
        self.error: BackendError | None = None  # what broke it, behind what was good
        self.finish_reason: str | None = None
        self.first_content = False
        self.said_bytes = 0  # of text in what came: tokens are estimated from it
        self.shown = False  # a picture came, whose tokens no text tells
        self.tier: str | None = None
        self.usage_final = False
        self._choices = choices
        self._earlier: tuple[bytes, ...] = ()  # usage that a later one took the place of
        self._ending_bytes = 0  # of the event that ends it
        self._failed: set[int] = set()  # choices that ended in an error
        self._finished: set[int] = set()
        self._hide_usage = hide_usage
        self._splitter = EventSplitter()
        self._spoke = False  # a choice was there, with words or without
        self._started = False
        self._usage_raw: bytes | None = None
        self._withheld = bytearray()
        self._withholding = False

    @property
    def usage(self) -> dict[str, Any] | None:
        """The usage known so far: the final chunk's, else the last reported."""
        return decode_usage(self._usage_raw)

    @property
    def earlier_usage(self) -> tuple[dict[str, Any], ...]:
        """Return the last three figures that `usage` took the place of, oldest first."""
        decoded = (decode_usage(raw) for raw in self._earlier)
        return tuple(usage for usage in decoded if usage is not None)

    @property
    def counts(self) -> tuple[int, int] | None:
        """(prompt, output) tokens as the target counts them so far, where it says both."""
        usage = self.usage or {}
        prompt, output = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if isinstance(prompt, int) and isinstance(output, int):
            return prompt, output
        return None

    @property
    def is_ended(self) -> bool:
        """Whether the answer is whole: `[DONE]` was seen, or every choice finished."""
        return self.complete or len(self._finished) >= self._choices

    def feed(self, chunk: bytes) -> bytes:
        """Take a segment; return what may leave at once. Raises `BackendError` when broken."""
        if self.error is not None:
            raise self.error
        if self.complete:
            return b""
        out: list[bytes] = []
        try:
            if not self._splitter.rest and len(chunk) <= EVENT_LIMIT_BYTES and is_simple(chunk):
                events, spans = [chunk], [(6, len(chunk) - 2)]
            else:
                events, spans = self._splitter.feed(chunk), None
            for event in events:
                passed = self._event(event, spans)
                if self._withholding:
                    self._withhold(passed)
                elif passed:
                    out.append(passed)
                    self._started = True
                if self.complete:
                    break
        except BackendError as error:
            self.error = error
            if not out:
                raise
        return out[0] if len(out) == 1 else b"".join(out)

    def check_end(self) -> None:
        """At the upstream's end, before settling: raises if the answer is not whole."""
        if self.error is not None:
            raise self.error
        if not self.is_ended:
            rest = bytes(self._splitter.rest)  # an event whose empty line never came
            if len(rest) <= WITHHELD_LIMIT_BYTES and error_in_events(rest) is not None:
                raise self._reported_error(rest)
            raise self._broken_error("the stream ended before the answer did")
        if not (self._spoke or self.content_events or self._finished):
            raise self._broken_error("the stream ended without an answer")

    def finish(self) -> bytes:
        """What was withheld, for when the settle is durable."""
        self.check_end()
        rest = bytes(self._withheld) + (b"" if self.complete else self.last_word)
        self._withheld.clear()
        return rest

    def _event(self, event: bytes, spans: _Spans | None) -> bytes:
        """Observe one event; return what of it may be relayed, marking the ending as such."""
        spans = spans or data_spans(event)
        if spans is None:
            reported = self._reported_error(event) if error_in(event) is not None else None
            raise reported or self._broken_error("the answer is no event stream")
        if not spans:
            return event
        payload = join_data(event, spans)
        if payload[:1] != b"{" and (passed := self._relay_marker(event, payload)) is not None:
            return passed
        chunk = self._chunk(payload)
        if chunk.service_tier:
            self.tier = printable_text(chunk.service_tier)
        usage = chunk.usage_bytes()
        if chunk.choices:
            self._spoke = True
            if not self._observe(chunk.choices, payload):
                self._observe_unknown(payload)
            self._take_inside(chunk.choices)
        if usage is None and (told := chunk.vendor_usage_bytes()) is not None:
            self._take_usage(told, final=self._withholding or not chunk.choices)
        if usage is not None:
            return self._usage(event, chunk.choices, usage)
        if chunk.choices is None and tells_error(event, payload):
            raise self._reported_error(payload)
        return event

    def _chunk(self, payload: bytes) -> Chunk:
        chunk = read_chunk(payload)
        if chunk is None:
            if error_in(payload) is not None:  # Google sends a list of one
                raise self._reported_error(payload)
            raise self._broken_error("an event is not a JSON object")
        if chunk.error_bytes() is not None:
            raise self._reported_error(payload)
        return chunk

    def _relay_marker(self, event: bytes, payload: bytes) -> bytes | None:
        """What is relayed of an event that ends the answer, or says nothing; `None` of others."""
        word = payload.strip()
        if word == b"[DONE]":
            self.complete = self._withholding = True
            return event
        if word:
            return None
        if tells_error(event, payload):
            raise self._reported_error(payload)
        return b""

    def _usage(self, event: bytes, choices: list[ChunkChoice] | None, raw: bytes) -> bytes:
        """Take a chunk's usage; return the event as it may be relayed.

        A chunk of its own has the last figure, wherever it stands, until words come behind it.
        """
        self._take_usage(raw, final=self._withholding or not choices)
        if choices:
            return cut_usage(event, raw) if self._hide_usage else event
        return b"" if self._hide_usage else event

    def _take_inside(self, choices: list[ChunkChoice]) -> None:
        """Usage inside a choice, which is left where it stands: it is no member of the chunk."""
        for choice in choices:
            raw = choice.usage_bytes()
            if raw is not None:
                self._take_usage(raw, final=self._withholding)

    def _take_usage(self, raw: bytes, *, final: bool) -> None:
        counted = self._counted(raw)
        if self._usage_raw not in (None, counted):
            self._earlier = (*self._earlier[1 - EARLIER_LIMIT :], self._usage_raw)
        self._usage_raw, self.usage_final = counted, final

    def _observe(self, choices: list[ChunkChoice], payload: bytes) -> bool:
        """Count what the choices say and which of them end; whether there was a word."""
        content = False
        for choice in choices:
            if choice.has_content():
                content = True
                self.said_bytes += choice.content_bytes()
                self.shown = self.shown or choice.shows()
            if choice.is_failed():
                self._failed.add(choice.index)
            if choice.finish_reason:
                self.finish_reason = printable_text(choice.finish_reason)
                self._finished.add(choice.index)
                if len(self._finished) >= self._choices:
                    self._withholding = True
        if content:
            self._add_content()
        if self._failed and len(self._failed) >= self._choices:
            raise self._reported_error(payload)
        return content

    def _observe_unknown(self, payload: bytes) -> None:
        """Words in members that have no name here, as an answer's thoughts had before they had one.

        Only chunks without any known word are looked through.
        """
        said = unknown_bytes(payload)
        if said:
            self.said_bytes += said
            self._add_content()

    def _add_content(self) -> None:
        self.content_events += 1
        self.first_content = True
        if not self._withholding:
            self.usage_final = False  # a figure that came before is of less than came

    def _counted(self, usage: bytes) -> bytes:
        """Itself: it is kept for as long as the stream lasts, for each choice."""
        if len(usage) > USAGE_LIMIT_BYTES:
            raise self._broken_error(f"its usage is larger than {USAGE_LIMIT_BYTES} bytes")
        return usage

    def _withhold(self, event: bytes) -> None:
        if not self._withheld:
            self._ending_bytes = len(event)
        self._withheld += event
        if len(self._withheld) - self._ending_bytes > WITHHELD_LIMIT_BYTES:
            raise UpstreamBroken("the answer goes on far beyond its ending")

    def _broken_error(self, reason: str) -> BackendError:
        """Before anything left, another target may still be tried."""
        return UpstreamBroken(reason) if self._started else InvalidResponse(reason)

    def _reported_error(self, payload: bytes) -> BackendError:
        """The upstream's own error event; its message may quote the request and stays here.

        It is judged by what it says as long as the model had said nothing, nor counted any output.
        """
        reported = error_in_events(payload) or read_error(payload)
        output = (self.usage or {}).get("completion_tokens")
        if self.content_events or (isinstance(output, int) and output > 0):
            return UpstreamBroken(str(reported))
        self._usage_raw, self._earlier = None, ()  # of a prompt that was not worked on
        return reported


class EventRelay(ByteRelay):
    """For own engines: cuts the running `usage` member out of every chunk.

    vLLM's running usage counts one choice's output (and one prompt's input) at a time, so the
    last figure of every choice is kept and summed until the final chunk says it all.
    """

    __slots__ = ("_keep_running", "_like", "_n", "_running")

    def __init__(
        self, hide_usage: bool, *, choices: int = 1, n: int = 1, keep_running: bool = False
    ) -> None:
        """`n`: choices per prompt; `keep_running`: the client asked for running usage itself."""
        super().__init__(hide_usage, choices=choices)
        self._keep_running = keep_running
        self._n = max(1, n)
        self._like: ChunkTemplate | None = None  # the last chunk that was read in full
        self._running: dict[int, bytes] = {}

    def feed(self, chunk: bytes) -> bytes:
        if self._like is not None and not self._withholding and not self._splitter.rest:
            taken = self._like.match_event(chunk)
            if taken is not None and self.error is None and len(chunk) <= EVENT_LIMIT_BYTES:
                return self._took(taken)
        return super().feed(chunk)

    @property
    def usage(self) -> dict[str, Any] | None:
        if self.usage_final or not self._running:
            return decode_usage(self._usage_raw)
        return sum_running(self._running, self._n)

    @property
    def counts(self) -> tuple[int, int] | None:
        if self._choices == 1 and not self.usage_final and self._running:  # of every chunk
            counts = read_counts(self._running[0])
            if counts is not None:
                return counts
        return super().counts

    def _event(self, event: bytes, spans: _Spans | None) -> bytes:
        """Several that are alike come in one segment to a gateway that is late."""
        if self._like is not None and not self._withholding:
            taken = self._like.match_event(event)
            if taken is not None:
                return self._took(taken)
        return super()._event(event, spans)

    def _took(self, taken: TemplateMatch) -> bytes:
        said, self._running[0], event = taken
        self.said_bytes += said
        self.content_events += 1
        return event

    def _usage(self, event: bytes, choices: list[ChunkChoice] | None, raw: bytes) -> bytes:
        if not choices:
            return super()._usage(event, choices, raw)
        if 0 <= (index := choices[0].index) < self._choices:
            self._running[index] = self._counted(raw)
        if self._keep_running:
            return event
        shown = cut_usage(event, raw)
        if self._choices == 1 == len(choices) and not index and not choices[0].finish_reason:
            self._like = likeness_of(event, TemplateMatch(choices[0].content_bytes(), raw, shown))
        return shown


def error_event(message: str, type_: str, code: str | None) -> bytes:
    """The one event that tells a client, mid-stream, that its answer ends here."""
    error = {"message": message, "type": type_, "param": None, "code": code}
    return b"data: " + msgspec.json.encode({"error": error}) + b"\n\n"
