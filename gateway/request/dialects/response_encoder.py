"""Encoder of answers in another dialect: chat chunks become content blocks and events.

An answer is a sequence of blocks: reasoning, text, refusal, tool calls. A block opens with its
first piece, grows with every further piece, and closes when something else begins. Calls may be
interleaved: one with incomplete arguments stays open while the next begins. Whole answers take the
same path, with one piece per block. Nothing here waits, so that what the relay withholds cannot be
sent early. Only a call is kept back until its arguments begin, or something else: clients need its
name first, and some targets tell names in pieces.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from backends.half_characters import HalfJoiner
from backends.sse import EventSplitter, data_spans, join_data
from gateway.http.body import Members
from gateway.request.dialects.chat import (
    ContentPiece,
    Kind,
    UrlCitation,
    citations,
    first_choice,
    joined_name,
    pieces,
    read_object,
    tokens_of,
)
from ledger.journals.records import TokenCounts

STRING_BYTES = 64  # overhead of a short string, besides its characters
# The text that ended an answer, in the members of vLLM, SGLang and llama.cpp.
_STOP_MEMBERS: Final = ("stop_reason", "matched_stop", "stopping_word")

encode = msgspec.json.encode


class ContentBlock:
    """One part of an answer; `index` is its position."""

    __slots__ = ("citations", "closed", "id", "index", "kind", "logprobs", "name", "parts")

    def __init__(self, kind: Kind, index: int, piece: ContentPiece, spare_id: str) -> None:
        self.kind = kind
        self.index = index
        self.id = piece.id or spare_id
        self.name = piece.name
        self.parts: list[str] = []
        self.citations: list[UrlCitation] = []
        self.logprobs: list[dict[str, Any]] = []  # of a text's tokens, where the dialect has them
        self.closed = False

    @property
    def text(self) -> str:
        return "".join(self.parts)

    @property
    def is_complete(self) -> bool:
        """Return whether nothing can follow; a call is complete once its arguments parse."""
        if self.kind != "call":
            return True
        last = next((part for part in reversed(self.parts) if part.strip()), "")
        return last.rstrip().endswith("}") and read_object(self.text.encode()) is not None


class ResponseEncoder(ABC):
    """An encoder of one answer: `feed` takes chat's event stream, `read_whole` a completion.

    The contents are kept to the end, where some dialects repeat them; `held_bytes` is roughly their
    size.
    """

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.model = ""
        self.tier: str | None = None
        self.finish: str | None = None
        self.stop: str | None = None  # the stop text that ended it, if the target reports it
        self.native: str | None = None  # the provider's own reason for the end
        self.details: dict[str, Any] | None = None  # the provider's details of a refusal
        self.booked: TokenCounts | None = None  # the ledger's tokens, once known
        self._reported = TokenCounts()
        self.prompt_estimate = 0  # for the start of a stream, before anything is counted
        self.blocks: list[ContentBlock] = []
        self._calls: dict[int, ContentBlock] = {}
        self._early: dict[int, ContentPiece] = {}  # calls without arguments or name so far
        self._splitter = EventSplitter()
        self._halves = HalfJoiner()
        self.held_bytes = 0
        self.elapsed_s = 0  # seconds from the request to the end of its answer
        self._begun = False
        self._over = False

    def feed(self, data: bytes) -> bytes:
        """Return the events of these bytes."""
        return b"".join(
            event
            for told in self._splitter.feed(data)
            for event in self._events(self._halves.feed(event_data(told)))
        )

    def end(self) -> bytes:
        """Return the last events of a stream; empty after an error."""
        return self.end_blocks() + self.end_stream()

    @property
    def failed(self) -> bool:
        """Return whether the stream has ended, as it does with an error."""
        return self._over

    def end_blocks(self) -> bytes:
        """Close every block; afterwards the answer is whole, and `document` has all of it."""
        if self._over:
            return b""
        out = [*self._start_once(), *self._tell_rest()]
        for block in self.blocks:
            out += self._close(block)
        return b"".join(out)

    def end_stream(self) -> bytes:
        """Return the last events, after those of `end_blocks`; none after an error."""
        if self._over:
            return b""
        self._over = True
        return b"".join(self.on_finish())

    def state_document(
        self, status: str, error: str | None = None, code: str = "server_error"
    ) -> dict[str, Any]:
        """Return the unfinished answer, where the dialect has a form for that."""
        del status, error, code
        return self.document()

    def failed_document(self) -> dict[str, Any] | None:
        """Return the answer as far as it came before a failure, where the dialect has a form."""
        return None

    def end_cancelled(self) -> bytes:
        """Return the last events of an answer that was cancelled; most dialects have none."""
        self._over = True
        return b""

    def note_events(self) -> None:  # noqa: B027  (of most dialects none is told once more)
        """Note from here on in which pieces the answer is told."""

    @property
    def noted_events(self) -> Sequence[Sequence[Any]]:
        """Return the events recorded so far."""
        return ()

    def mark_unstored(self) -> None:  # noqa: B027  (most dialects store nothing)
        """Mark the answer as not stored, for its last event, where the dialect reports that."""

    def repeat(self, members: Members) -> None:  # noqa: B027  (as above)
        """Repeat these members of the request in the answer, in place of those that were sent."""

    def read_whole(self, body: bytes) -> None:
        """Read a chat completion in one piece."""
        answer = read_object(body) or {}
        choice = self.observe(answer) or {}
        for piece in pieces(choice.get("message")):
            for _ in self._encode_piece(piece):
                pass
        for _ in self._tell_rest():
            pass
        for _ in self._cite(choice.get("message")):
            pass
        for block in self.blocks:
            block.closed = True

    @property
    def tokens(self) -> TokenCounts:
        """Return the booked token counts, as a target may report none or impossible ones."""
        return self._reported if self.booked is None else self.booked

    @property
    def reason(self) -> str:
        """Return chat's finish reason; targets report a forced tool call as a plain stop."""
        finish = self.finish or "stop"
        if finish in ("stop", "function_call") and self._calls:
            return "tool_calls"
        return finish

    def _events(self, payload: bytes) -> Iterator[bytes]:
        if self._over or not payload or payload == b"[DONE]":
            return
        chunk = read_object(payload)
        if chunk is None:
            return
        error = chunk.get("error")
        if isinstance(error, dict):
            self._over = True
            yield from self.on_error(error)
            return
        choice = self.observe(chunk)
        yield from self._start_once()
        for piece in pieces((choice or {}).get("delta")):
            self.held_bytes += len(piece.text) + STRING_BYTES
            yield from self._encode_piece(piece)
        yield from self._cite((choice or {}).get("delta"))

    def observe(self, chunk: dict[str, Any]) -> dict[str, Any] | None:
        """Record what a chunk or whole answer has besides contents; return its choice."""
        model, tier, usage = chunk.get("model"), chunk.get("service_tier"), chunk.get("usage")
        if isinstance(model, str) and model:  # Azure's first chunk has an empty name
            self.model = model
        if isinstance(tier, str):
            self.tier = tier
        if usage:
            self._reported = tokens_of(usage)
        choice = first_choice(chunk)
        if choice is not None:
            finish = choice.get("finish_reason")
            if isinstance(finish, str):
                self.finish = finish
                self._observe_ending(choice)
        return choice

    def _observe_ending(self, choice: dict[str, Any]) -> None:
        """Record which stop text ended the answer, and the provider's own reason."""
        stops = (choice.get(name) for name in _STOP_MEMBERS)
        self.stop = next((stop for stop in stops if isinstance(stop, str)), None)
        native, details = choice.get("native_finish_reason"), choice.get("stop_details")
        self.native = native if isinstance(native, str) else None
        self.details = details if isinstance(details, dict) else None

    def _start_once(self) -> Iterator[bytes]:
        if not self._begun:
            self._begun = True
            yield from self.on_start()

    def _encode_piece(self, piece: ContentPiece) -> Iterator[bytes]:
        piece = self.told_as(piece)
        kind = piece.kind
        yield from self._tell_named(piece)
        if kind != "call":
            yield from self._tell(kind, self._last(kind), piece)
            return
        early = self._early.pop(piece.call, None)
        block = self._call_of(piece) if early is None else None
        if early is not None:
            name, text = joined_name(early.name, piece.name), early.text + piece.text
            piece = piece._replace(id=early.id or piece.id, name=name, text=text)
        if block is None and not (piece.name and piece.text):
            self._early[piece.call] = piece
        else:
            yield from self._tell(kind, block, piece)

    def _tell_named(self, piece: ContentPiece) -> Iterator[bytes]:
        """Tell the calls whose names are complete, as the piece is none of theirs."""
        for number, early in list(self._early.items()):
            same = piece.kind == "call" and piece.call == number
            another = bool(piece.name and piece.id and early.id and piece.id != early.id)
            if early.name and (another or not same):
                del self._early[number]
                yield from self._tell("call", None, early)

    def _tell_rest(self) -> Iterator[bytes]:
        """Tell what comes with the end alone: calls without arguments, or without names."""
        for piece in self._early.values():
            yield from self._tell("call", None, piece)
        self._early.clear()

    def _tell(self, kind: Kind, block: ContentBlock | None, piece: ContentPiece) -> Iterator[bytes]:
        """Add a piece to its block, or to a new one."""
        if block is None:
            for other in self.blocks:
                if not other.closed and other.is_complete:
                    yield from self._close(other)
            block = self._open(kind, piece)
            yield from self.on_block_start(block)
        if piece.text:
            block.parts.append(piece.text)
            yield from self.on_block_delta(block, piece.text)

    def _cite(self, said: Any) -> Iterator[bytes]:
        """Add citations to their text, while that can still be sent."""
        for citation in citations(said):
            texts = (block for block in reversed(self.blocks) if block.kind == "text")
            block = next(texts, None)
            if block is not None and not (block.closed and self._begun):
                self.held_bytes += len(citation.url) + len(citation.title) + STRING_BYTES
                block.citations.append(citation)
                yield from self.on_citation(block, citation)

    def _call_of(self, piece: ContentPiece) -> ContentBlock | None:
        """Return the call that the piece continues.

        Some targets number all calls of an answer 0. Their next call has a name and an id of its
        own, or no id after complete arguments.
        """
        block = self._calls.get(piece.call)
        if block is None or not piece.name:
            return block
        if piece.id:
            return None if piece.id != block.id else block
        return None if block.is_complete and (piece.text or piece.name != block.name) else block

    def _last(self, kind: Kind) -> ContentBlock | None:
        last = self.blocks[-1] if self.blocks else None
        grows = last is not None and last.kind == kind != "picture"
        return last if grows else None

    def _open(self, kind: Kind, piece: ContentPiece) -> ContentBlock:
        index = len(self.blocks)
        spare = f"call_{self.request_id.removeprefix('req_')}_{index}"
        block = ContentBlock(kind, index, piece, spare)
        self.blocks.append(block)
        if kind == "call":
            self._calls[piece.call] = block
        return block

    def _close(self, block: ContentBlock) -> Iterator[bytes]:
        if not block.closed:
            block.closed = True
            yield from self.on_block_stop(block)

    # -- parts of a dialect -------------------------------------------------------------------

    def told_as(self, piece: ContentPiece) -> ContentPiece:
        """Return the piece in a form that the dialect has."""
        return piece

    def on_citation(self, block: ContentBlock, citation: UrlCitation) -> Iterator[bytes]:
        """Encode a citation of a text, where the dialect has a form for that."""
        del block, citation
        return iter(())

    @abstractmethod
    def on_start(self) -> Iterator[bytes]:
        """Yield the first events of a stream."""

    @abstractmethod
    def on_block_start(self, block: ContentBlock) -> Iterator[bytes]: ...

    @abstractmethod
    def on_block_delta(self, block: ContentBlock, text: str) -> Iterator[bytes]: ...

    @abstractmethod
    def on_block_stop(self, block: ContentBlock) -> Iterator[bytes]: ...

    @abstractmethod
    def on_finish(self) -> Iterator[bytes]:
        """Yield the last events, with usage."""

    @abstractmethod
    def on_error(self, error: dict[str, Any]) -> Iterator[bytes]:
        """Yield the events that end a broken stream; `error` is the error in chat's form."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return the whole answer."""


def event(name: str, document: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode(document))


def event_data(told: bytes) -> bytes:
    """Return the data of one event of chat's stream; empty where it has none."""
    spans = data_spans(told)
    return join_data(told, spans).strip() if spans else b""
