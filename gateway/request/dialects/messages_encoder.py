"""Encoder of answers as Anthropic's Messages: content blocks, with usage at the end.

`message_start` is sent before anything was counted: its `input_tokens` is the decision's estimate,
so that clients do not show zero. `message_delta` has the ledger's numbers, which replace it in
SDKs, counted as by Anthropic: `input_tokens` excludes tokens read from or written to a cache.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from backends.json_mending import mend_json
from backends.native_events import MEMBER, native_document
from gateway.request.dialects.chat import ContentPiece, picture_text, read_object
from gateway.request.dialects.response_encoder import (
    ContentBlock,
    ResponseEncoder,
    event,
    event_data,
)
from ledger.journals.records import TokenCounts
from ledger.prices.rates import prompt_tokens

_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
# Stop reasons that only Anthropic's models have, as their provider reports them.
_NATIVE = frozenset(("compaction", "model_context_window_exceeded", "pause_turn", "refusal"))
_TIERS = {"default": "standard", "standard": "standard", "priority": "priority", "batch": "batch"}
_TYPES = {  # by HTTP status, as Anthropic's SDK names them (anthropic 2.11.0)
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_CODES = {"upstream_timeout": 504, "unavailable": 503, "overloaded": 503}


class _EventType(msgspec.Struct):
    type: str = "message"


_decode_type = msgspec.json.Decoder(_EventType).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class MessagesEncoder(ResponseEncoder):
    def __init__(self, request_id: str) -> None:
        super().__init__(request_id)
        self._native = False  # whether the target's own events are sent
        self._document: Any = None  # of an answer in one piece that is sent unchanged
        self._refusal: list[str] = []  # text that the model marks as a refusal

    def feed(self, data: bytes) -> bytes:
        """Return the events of these bytes; the target's own whole events, if they carry any."""
        out: list[bytes] = []
        for told in self._splitter.feed(data):
            document = native_document(told)
            if document is None:
                out += self._events(event_data(told))
            elif not self._over:
                self._native = self._begun = True
                name = _decode_type(document).type.encode()
                out.append(b"event: %b\ndata: %b\n\n" % (name, document))
        return b"".join(out)

    def read_whole(self, body: bytes) -> None:
        self._document = _members_of(body).get(MEMBER)
        super().read_whole(body)

    def told_as(self, piece: ContentPiece) -> ContentPiece:
        if piece.kind == "refusal":
            self._refusal.append(piece.text)
        elif piece.kind == "picture":
            piece = piece._replace(text=picture_text(piece.text))
        return piece._replace(kind="text") if piece.kind in ("refusal", "picture") else piece

    def on_start(self) -> Iterator[bytes]:
        ending = {"stop_reason": None, "stop_sequence": None}
        message = self._message([], ending, usage(TokenCounts(input=self.prompt_estimate)))
        yield event("message_start", {"type": "message_start", "message": message})

    def on_block_start(self, block: ContentBlock) -> Iterator[bytes]:
        yield self._of(block, "content_block_start", content_block=_empty(block))

    def on_block_delta(self, block: ContentBlock, text: str) -> Iterator[bytes]:
        if block.kind == "call":
            delta = {"type": "input_json_delta", "partial_json": text}
        elif block.kind == "reasoning":
            delta = {"type": "thinking_delta", "thinking": text}
        else:
            delta = {"type": "text_delta", "text": text}
        yield self._of(block, "content_block_delta", delta=delta)

    def on_block_stop(self, block: ContentBlock) -> Iterator[bytes]:
        yield self._of(block, "content_block_stop")

    def on_finish(self) -> Iterator[bytes]:
        if self._native:  # the target has sent the end itself
            return
        told = {"type": "message_delta", "delta": self._ending(), "usage": self._usage()}
        yield event("message_delta", told)
        yield event("message_stop", {"type": "message_stop"})

    def on_error(self, error: dict[str, Any]) -> Iterator[bytes]:
        status = _CODES.get(str(error.get("code")), 500)
        yield event("error", error_document(status, str(error.get("message")), self.request_id))

    def document(self) -> Any:
        if self._document is not None:
            return self._document
        content = [_full(block) for block in self.blocks]
        return self._message(content, self._ending(), self._usage())

    def _message(
        self, content: list[Any], ending: dict[str, Any], used: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "id": f"msg_{self.request_id.removeprefix('req_')}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            **ending,
            "usage": used,
        }

    def _usage(self) -> dict[str, Any]:
        told, tier = usage(self.tokens), _TIERS.get(self.tier or "")
        return told if tier is None else {**told, "service_tier": tier}

    def _ending(self) -> dict[str, Any]:
        """Return the stop reason; for a refusal, with its details."""
        reason, stop = _REASONS.get(self.reason, "end_turn"), None
        if self.native in _NATIVE:
            reason = str(self.native)
        elif self.reason == "stop" and self.stop is not None:
            reason, stop = "stop_sequence", self.stop
        elif self.reason == "stop" and self._refusal:
            reason = "refusal"
        ending: dict[str, Any] = {"stop_reason": reason, "stop_sequence": stop}
        if reason == "refusal":
            words = "".join(self._refusal) or None
            known = {"type": "refusal", "category": None, "explanation": words}
            ending["stop_details"] = {**known, **(self.details or {}), "type": "refusal"}
        return ending

    def _of(self, block: ContentBlock, name: str, **members: Any) -> bytes:
        return event(name, {"type": name, "index": block.index, **members})


def usage(tokens: TokenCounts) -> dict[str, Any]:
    """Return counts as Anthropic defines them; details only where they are not zero."""
    written = tokens.cache_write + tokens.cache_write_1h
    told: dict[str, Any] = {
        "input_tokens": prompt_tokens(tokens) - tokens.cached - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.output,
    }
    if written:
        told["cache_creation"] = {
            "ephemeral_5m_input_tokens": tokens.cache_write,
            "ephemeral_1h_input_tokens": tokens.cache_write_1h,
        }
    if tokens.reasoning:
        told["output_tokens_details"] = {"thinking_tokens": tokens.reasoning}
    if tokens.searches:
        told["server_tool_use"] = {"web_search_requests": tokens.searches}
    return told


def _members_of(body: bytes) -> dict[str, msgspec.Raw]:
    """Return the members of an answer, also of JSON that only a lenient reader accepts."""
    try:
        return _decode_members(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        mended = mend_json(body)
        return {} if mended is None else _decode_members(mended)


def error_document(status: int, message: str, request_id: str) -> dict[str, Any]:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    error = {"type": kind, "message": message}
    return {"type": "error", "error": error, "request_id": request_id}


def _empty(block: ContentBlock) -> dict[str, Any]:
    if block.kind == "call":
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
    if block.kind == "reasoning":
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {"type": "text", "text": ""}


def _full(block: ContentBlock) -> dict[str, Any]:
    if block.kind == "call":
        return {**_empty(block), "input": _input(block.text)}
    if block.kind == "reasoning":
        return {**_empty(block), "thinking": block.text}
    return {**_empty(block), "text": block.text}


def _input(arguments: str) -> dict[str, Any]:
    """Return a call's arguments; invalid ones (cut off, or malformed) are shown as written."""
    if not arguments.strip():
        return {}
    found = read_object(arguments.encode())
    return {"invalid_arguments": arguments} if found is None else found
