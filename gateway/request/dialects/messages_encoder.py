"""An answer as Anthropic's Messages tell it: content blocks, with the usage at their end.

`message_start` is said before anything was counted: its `input_tokens` are the estimate that the
decision was made with, so that what a client shows meanwhile is no zero. `message_delta` has the
numbers that the ledger has, which SDKs put in its place, in Anthropic's way of counting:
`input_tokens` is what was neither read from a cache nor written to one.
"""

from collections.abc import Iterator
from typing import Any

from gateway.request.dialects.chat import ContentPiece, Kind, read_object
from gateway.request.dialects.response_encoder import ContentBlock, ResponseEncoder, event
from ledger.journals.records import TokenCounts
from ledger.prices.rates import prompt_tokens

_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
_TYPES = {  # of statuses, in the words that Anthropic's SDK knows (anthropic 2.11.0)
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


class MessagesEncoder(ResponseEncoder):
    def kind_of(self, piece: ContentPiece) -> Kind:
        return "text" if piece.kind == "refusal" else piece.kind

    def on_start(self) -> Iterator[bytes]:
        message = self._message([], None, None, TokenCounts(input=self.prompt_estimate))
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
        reason, stop = self._stop_reason()
        told = {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": stop},
            "usage": usage(self.tokens),
        }
        yield event("message_delta", told)
        yield event("message_stop", {"type": "message_stop"})

    def on_error(self, error: dict[str, Any]) -> Iterator[bytes]:
        status = _CODES.get(str(error.get("code")), 500)
        yield event("error", error_document(status, str(error.get("message")), self.request_id))

    def document(self) -> dict[str, Any]:
        return self._message(
            [_full(block) for block in self.blocks], *self._stop_reason(), self.tokens
        )

    def _message(
        self, content: list[Any], reason: str | None, stop: str | None, tokens: TokenCounts
    ) -> dict[str, Any]:
        return {
            "id": f"msg_{self.request_id.removeprefix('req_')}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": stop,
            "usage": usage(tokens),
        }

    def _stop_reason(self) -> tuple[str, str | None]:
        if self.reason == "stop" and self.stop is not None:
            return "stop_sequence", self.stop
        return _REASONS.get(self.reason, "end_turn"), None

    def _of(self, block: ContentBlock, name: str, **members: Any) -> bytes:
        return event(name, {"type": name, "index": block.index, **members})


def usage(tokens: TokenCounts) -> dict[str, Any]:
    written = tokens.cache_write + tokens.cache_write_1h
    return {
        "input_tokens": prompt_tokens(tokens) - tokens.cached - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.output,
    }


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
    """Arguments that are no object (cut off, or badly written) are shown as they were said."""
    if not arguments.strip():
        return {}
    found = read_object(arguments.encode())
    return {"invalid_arguments": arguments} if found is None else found
