"""Relay of a streamed answer: what is sent at once, what waits for the ledger, and usage.

Content is sent as it comes. The event that ends the answer (the last choice's finish, the usage
chunk or `[DONE]`) and everything after it wait until the settle is durable. So no client has a
whole answer without a row. `feed` never waits. Events pass unchanged, except unrequested usage and
empty data, which clients parse as JSON (`engine_relay` is for own engines). An answer without
`[DONE]` gets one, since some clients retry without it. A stream breaks by an error event, invalid
JSON, or a missing end or content; good events go first, then `error` and the next call report it.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from backends.chunk_choices import ChunkChoice, unnamed_words
from backends.chunks import Chunk, parse_answer, printable_text, read_chunk, tells_error
from backends.errors import BackendError, InvalidResponse, UpstreamBroken, broken_by
from backends.reported import error_in, error_in_events, read_error
from backends.sse import (
    EVENT_LIMIT_BYTES,
    EventSplitter,
    cut_usage,
    data_spans,
    is_simple,
    join_data,
)
from backends.unreadable_answers import with_usage_of
from backends.usage_bytes import decode_told, read_counts
from backends.usage_places import counts_output, usage_in
from gateway.kinds.chunk_template import WordFrames, is_plain
from gateway.kinds.stream_usage import StreamUsage, UsageTooLong, trailing_usage

__all__ = ["ByteRelay", "parse_answer"]
WITHHELD_LIMIT_BYTES = 4 * 1024 * 1024  # after the event that ends the answer

_Spans = list[tuple[int, int]]


class ByteRelay:
    """A relay for APIs: events pass unchanged, except usage that the client did not request.

    A stream can hold an incoming event (32 MiB), the last event (as much), and 4 MiB after it.
    """

    __slots__ = (
        "_beside_bytes", "_choices", "_ending_bytes", "_failed", "_finished", "_frames",
        "_hide_usage", "_keep_running", "_splitter", "_spoke", "_started", "_told", "_withheld",
        "_withholding", "complete", "content_events", "error", "finish_reason", "first_content",
        "said_bytes", "shown", "spoken", "tier", "unnamed_bytes",
    )  # fmt: skip

    last_word = b"data: [DONE]\n\n"

    def __init__(self, hide_usage: bool, *, choices: int = 1, keep_running: bool = False) -> None:
        """Create the relay; `choices` is the number of choices in the answer (`n` x prompts).

        `keep_running`: the client requested running usage.
        """
        self.complete = False
        self.content_events = 0
        self.error: BackendError | None = None  # the error that broke it, after the good events
        self.finish_reason: str | None = None
        self.first_content = False
        self.said_bytes = 0  # certain text received, from which tokens are estimated
        self.shown = False  # a picture came, whose tokens do not follow from text
        self.spoken = False  # a sound came
        self.tier: str | None = None
        self.unnamed_bytes = 0  # text in unknown members
        self._beside_bytes = 0  # possible text besides the certain text
        self._choices = choices
        self._ending_bytes = 0  # size of the event that ends the answer
        self._failed: set[int] = set()  # choices that ended in an error
        self._finished: set[int] = set()
        self._frames = WordFrames()
        self._hide_usage = hide_usage
        self._keep_running = keep_running
        self._splitter = EventSplitter()
        self._spoke = False  # a choice came, with or without text
        self._started = False
        self._told = StreamUsage(choices)
        self._withheld = bytearray()
        self._withholding = False

    @property
    def usage(self) -> dict[str, Any] | None:
        """Return the usage known so far: the final chunk's, else the last reported."""
        return self._told.last

    @property
    def usage_final(self) -> bool:
        """Return whether no text came after the usage."""
        return self._told.final

    @property
    def usage_behind(self) -> bool:
        """Return whether text came after the last figure, or it lacks some choices."""
        return self._told.behind

    @property
    def usage_stands(self) -> bool:
        """Return whether figures did not grow with the text, as if each were of its chunk only."""
        return self._told.stands

    @property
    def earlier_usage(self) -> tuple[dict[str, Any], ...]:
        """Return the figures that `usage` replaced and no other figure covers, oldest first."""
        return self._told.replaced

    @property
    def most_said_bytes(self) -> int:
        """Return `said_bytes` plus everything else that may be text."""
        return self.said_bytes + self._beside_bytes

    @property
    def counts(self) -> tuple[int, int] | None:
        """Return the target's (prompt, output) tokens so far, None unless it reports both."""
        usage = self.usage or {}
        prompt, output = usage.get("prompt_tokens"), usage.get("completion_tokens")
        return (prompt, output) if isinstance(prompt, int) and isinstance(output, int) else None

    @property
    def is_ended(self) -> bool:
        """Return whether the answer is whole: `[DONE]` was seen, or every choice finished."""
        return self.complete or len(self._finished) >= self._choices

    def feed(self, chunk: bytes) -> bytes:
        """Take a segment; return what may be sent at once. Raises `BackendError` when broken."""
        if self.error is not None:
            raise self.error
        if self.complete:
            return b""
        out: list[bytes] = []
        events, at = [chunk], 0
        try:
            if not self._splitter.rest and len(chunk) <= EVENT_LIMIT_BYTES and is_simple(chunk):
                spans: _Spans | None = [(6, len(chunk) - 2)]
            else:
                events, spans = self._splitter.feed(chunk), None
            for event in events:
                at += 1
                passed = self._event(event, spans)
                if self._withholding:
                    self._withhold(passed)
                elif passed:
                    out.append(passed)
                    self._started = True
                if self.complete:
                    self._trail(events[at:])
                    break
        except (BackendError, UsageTooLong) as error:
            broken = error if isinstance(error, BackendError) else self._broken_error(str(error))
            self.error = broken
            self._trail(events[at:])
            if not out:
                raise broken from None
        return out[0] if len(out) == 1 else b"".join(out)

    def take_trailing(self, piece: bytes) -> None:
        """Record usage after the answer's end or its error; nothing is relayed."""
        with suppress(BackendError):
            self._trail(self._splitter.feed(piece))

    def _trail(self, events: Iterable[bytes]) -> None:
        if self.error is None or self.content_events:  # otherwise nothing is charged
            for raw in trailing_usage(events):
                self._told.take(raw, final=True)

    def check_end(self) -> None:
        """Check the answer at the upstream's end. Raises `BackendError` if it is not whole."""
        if self.error is not None:
            raise self.error
        rest = bytes(self._splitter.rest)  # an event without its empty line
        if not self.is_ended:
            if len(rest) <= WITHHELD_LIMIT_BYTES and error_in_events(rest) is not None:
                raise self._reported_error(rest)
            raise self._broken_error("the stream ended before the answer did", rest)
        self._trail([rest])
        if not (self._spoke or self.content_events or self._finished):
            raise self._broken_error("the stream ended without an answer")

    def finish(self) -> bytes:
        """Return the withheld bytes, to be sent once the settle is durable."""
        self.check_end()
        rest = bytes(self._withheld) + (b"" if self.complete else self.last_word)
        self._withheld.clear()
        return rest

    def _event(self, event: bytes, spans: _Spans | None) -> bytes:
        """Read one event; return the part to relay, and start withholding at the ending."""
        spans = spans or data_spans(event)
        if spans is None:
            if error_in(event) is not None:
                raise self._reported_error(event)
            raise self._broken_error("the answer is not an event stream", event)
        if not spans:
            return event
        payload = join_data(event, spans)
        if payload[:1] != b"{" and (passed := self._relay_marker(event, payload)) is not None:
            return passed
        text = None if self._withholding else self._frames.text_of(payload)
        if text is not None and is_plain(text):
            self.said_bytes += len(text)
            self._add_content()
            return event
        chunk = self._chunk(payload)
        if chunk.service_tier and chunk.service_tier != self.tier:
            self.tier = printable_text(chunk.service_tier)
            self._frames.forget()
        usage, choices, passed = chunk.usage_bytes(), chunk.choices, event
        if choices:
            self._observe_choices(event, payload, chunk, is_known=text is not None)
        elif usage is None:
            self._observe_others(payload, said=False, told=False)
        if usage is not None:
            passed = self._usage(event, choices, usage)
        self._check_errors(chunk, event, payload)
        return passed

    def _observe_choices(
        self, event: bytes, payload: bytes, chunk: Chunk, *, is_known: bool
    ) -> None:
        """Record a chunk's text and usage; `is_known`: the rest of the chunk was read before."""
        choices = chunk.choices or []
        self._spoke = True
        said = self._observe(choices)
        told = chunk.usage_bytes() is not None or self._told.take_inside(
            event, choices, final=self._withholding
        )
        ends = not told and choices[-1].finish_reason is not None
        if not said or ends or not (is_known or self._is_plain(payload)):
            self._observe_others(payload, said=said, told=told)

    def _chunk(self, payload: bytes) -> Chunk:
        chunk = read_chunk(payload)
        if chunk is None:
            if error_in(payload) is not None:  # Google sends a list with one error
                raise self._reported_error(payload)
            raise self._broken_error("an event is not a JSON object", payload)
        return chunk

    def _check_errors(self, chunk: Chunk, event: bytes, payload: bytes) -> None:
        """Raise the error that an event reports, after its text and usage were counted."""
        failed = bool(self._failed) and len(self._failed) >= self._choices
        if failed or chunk.error_bytes() is not None:
            raise self._reported_error(payload)
        if chunk.choices is None and tells_error(event, payload, is_first=not self._spoke):
            raise self._reported_error(payload)

    def _relay_marker(self, event: bytes, payload: bytes) -> bytes | None:
        """Return the bytes to relay for an ending or an empty event; `None` for other events."""
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
        """Record a chunk's usage; return the event as it may be relayed.

        Usage in a chunk of its own is final until text follows. Usage of only the prompt, at the
        beginning, is relayed only if the client requested running usage: clients that add figures
        up would count the prompt twice.
        """
        self._told.take_event(event, raw, final=self._withholding or not choices)
        if not self._hide_usage and (self._keep_running or not self._begins(choices, raw)):
            return event
        return cut_usage(event, raw) if choices else b""

    def _begins(self, choices: list[ChunkChoice] | None, raw: bytes) -> bool:
        """Return whether usage beside unfinished choices counts no output yet."""
        if not choices or self._withholding or any(choice.finish_reason for choice in choices):
            return False
        counts = read_counts(raw)
        return counts is not None and not counts[1]

    def _observe(self, choices: list[ChunkChoice]) -> bool:
        """Count the text and the endings of choices; return whether there was any content."""
        content = False
        for choice in choices:
            if choice.has_content():
                content = True
                least, most = choice.said()
                self.said_bytes += least
                self._beside_bytes += most - least
                self.shown = self.shown or choice.shows()
                self.spoken = self.spoken or choice.speaks()
            if choice.is_failed():
                self._failed.add(choice.index)
            if choice.finish_reason:
                self.finish_reason = printable_text(choice.finish_reason)
                self._finished.add(choice.index)
                self._withholding = self._withholding or len(self._finished) >= self._choices
        if content:
            self._add_content()
        return content

    def _observe_others(self, payload: bytes, *, said: bool, told: bool) -> None:
        """Count text and usage in unknown members.

        Chunks that differ only in their text are searched once. `said`: the chunk has known text;
        `told`: it has usage of its own.
        """
        value = decode_told(payload)
        if value is None:
            return
        text, (certain, most), words = unnamed_words(value)
        self.unnamed_bytes += words
        least = 0 if said else certain  # thoughts have several names, and would count twice
        self.said_bytes += least
        self._beside_bytes += most - least
        if text and not said:
            self._add_content()
        if not told and (usage := usage_in(value)) is not None:
            raw = msgspec.json.encode(usage)
            self._told.take(raw, final=self._withholding or not value.get("choices"))
        elif said and not (words or told or most):
            self._frames.learn(payload)

    def _is_plain(self, _payload: bytes) -> bool:
        """Return whether a new kind of chunk certainly has no text in unknown members."""
        return False

    def _add_content(self) -> None:
        self.content_events += 1
        self.first_content = True
        self._told.pass_words()

    def _withhold(self, event: bytes) -> None:
        if not self._withheld:
            self._ending_bytes = len(event)
        self._withheld += event
        if len(self._withheld) - self._ending_bytes > WITHHELD_LIMIT_BYTES:
            raise UpstreamBroken("the answer goes on far beyond its ending")

    def _broken_error(self, reason: str, unread: bytes = b"") -> BackendError:
        """Return the error of a broken stream; `unread` may be a body that is no stream.

        Before anything was sent, another target may still be tried.
        """
        started = self._started
        return UpstreamBroken(reason) if started else with_usage_of(InvalidResponse(reason), unread)

    def _reported_error(self, payload: bytes) -> BackendError:
        """Return the upstream's error event; its message may quote the request, and stays here.

        Its kind counts only while no content and no output count had come.
        """
        reported = error_in_events(payload) or read_error(payload)
        if reported.usage is not None and reported.usage != self.usage:
            self._told.take(msgspec.json.encode(reported.usage), final=True)
        counted = self.usage
        if self.content_events or (counted is not None and counts_output(counted)):
            return broken_by(reported)
        self._told.forget()
        return reported
