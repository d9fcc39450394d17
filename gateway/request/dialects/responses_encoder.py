"""Encoder of answers as OpenAI's Responses: items, their events, and the whole answer.

Every block is an item, and the last event of a stream has all items with the ledger's usage: cached
tokens within the input, reasoning within the output. A stream that breaks ends with
`response.failed`, after an `error` for clients that only know that.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateway.http.body import Members
from gateway.request.dialects.chat import INLINE, ContentPiece, UrlCitation, picture_text
from gateway.request.dialects.client_tools import (
    CLIENT_TOOLS,
    CUSTOM,
    INPUT,
    call_members,
    custom_input,
)
from gateway.request.dialects.json_text import JsonTextReader
from gateway.request.dialects.response_encoder import ContentBlock, ResponseEncoder, event
from gateway.request.dialects.responses_echo import echo_of
from gateway.request.dialects.responses_replay import PICTURE, note_event
from gateway.request.dialects.responses_tools import FUNCTION, CalledTool
from gateway.request.dialects.token_logprobs import held_bytes, token_logprobs, tokens_of_text
from ledger.journals.records import TokenCounts
from ledger.prices.rates import prompt_tokens

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_PARTS = {"text": "output_text", "refusal": "refusal", "reasoning": "reasoning_text"}
NO_ARGUMENTS = "{}"
_PREFIXES = {"text": "msg", "refusal": "msg", "reasoning": "rs", "call": "fc", "picture": "ig"}
_CUSTOM_PREFIX = "ctc"
_DEFAULTS: Mapping[str, Any] = {
    "background": False,
    "conversation": None,
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


class ResponsesEncoder(ResponseEncoder):
    def __init__(
        self,
        request_id: str,
        created_s: int,
        *,
        echo: Mapping[str, Any],
        tools: Mapping[str, CalledTool] | None = None,
    ) -> None:
        """Create the encoder; `echo` has the members of the request that the answer repeats.

        `tools` has the client's names of the functions that chat got.
        """
        super().__init__(request_id)
        self._created_s = created_s
        self._echo = dict(echo)
        self._tools = tools or {}
        self._inputs: dict[int, JsonTextReader] = {}  # readers of custom tools' calls, by block
        self._likely: list[dict[str, Any]] = []  # tokens whose text has not arrived yet
        self._number = 0
        self._noted: list[list[Any]] | None = None
        self._failure: str | None = None  # failure that is still to be sent
        self._name = request_id.removeprefix("req_")

    def note_events(self) -> None:
        self._noted = []

    @property
    def noted_events(self) -> Sequence[Sequence[Any]]:
        return self._noted or ()

    def mark_unstored(self) -> None:
        self._echo["store"] = False

    def repeat(self, members: Members) -> None:
        self._echo |= echo_of(members)

    def state_document(
        self, status: str, error: str | None = None, code: str = "server_error"
    ) -> dict[str, Any]:
        response = self._response(status)
        if error is not None:
            response["error"] = {"code": code, "message": error}
        return response

    def observe(self, chunk: dict[str, Any]) -> dict[str, Any] | None:
        choice = super().observe(chunk)
        if choice is not None and choice.get("logprobs"):
            told = token_logprobs(choice)
            self.held_bytes += held_bytes(told)
            self._likely += told
        return choice

    def told_as(self, piece: ContentPiece) -> ContentPiece:
        """Return a picture's data; a picture elsewhere becomes a line of text."""
        if piece.kind != "picture":
            return piece
        if piece.text.startswith(INLINE):
            return piece._replace(text=piece.text.partition(",")[2])
        return ContentPiece("text", picture_text(piece.text))

    def on_start(self) -> Iterator[bytes]:
        response = self._response("in_progress")
        yield self._format_event("response.created", response=response)
        yield self._format_event("response.in_progress", response=response)

    def on_block_start(self, block: ContentBlock) -> Iterator[bytes]:
        item = self._item(block, "in_progress", empty=True)
        yield self._format_event("response.output_item.added", output_index=block.index, item=item)
        if self._kind_of(block) is None:
            part = _part(block, "")
            yield self._of(block, "response.content_part.added", content_index=0, part=part)

    def on_citation(self, block: ContentBlock, citation: UrlCitation) -> Iterator[bytes]:
        told = {"annotation_index": len(block.citations) - 1, "annotation": _annotation(citation)}
        name = "response.output_text.annotation.added"
        yield self._of(block, name, content_index=0, **told)

    def on_block_delta(self, block: ContentBlock, text: str) -> Iterator[bytes]:
        kind = self._kind_of(block)
        likely = self._take_logprobs(block, text)
        if kind == FUNCTION:
            yield self._of(block, "response.function_call_arguments.delta", delta=text)
        elif kind == CUSTOM:
            reader = self._inputs.setdefault(block.index, JsonTextReader(INPUT))
            told = reader.feed(text)
            if told:
                yield self._of(block, "response.custom_tool_call_input.delta", delta=told)
        elif kind is None:
            name = f"response.{_PARTS[block.kind]}.delta"
            yield self._of(block, name, content_index=0, delta=text, **likely)

    def on_block_stop(self, block: ContentBlock) -> Iterator[bytes]:
        kind = self._kind_of(block)
        if kind == FUNCTION:
            if self._lacks_arguments(block):
                block.parts.append(NO_ARGUMENTS)
                yield from self.on_block_delta(block, NO_ARGUMENTS)
            name = "response.function_call_arguments.done"
            yield self._of(block, name, arguments=block.text, **self._name_members(block))
        elif kind == CUSTOM:
            told = custom_input(block.text)
            rest = told[self._inputs[block.index].size :] if block.index in self._inputs else told
            if rest:
                yield self._of(block, "response.custom_tool_call_input.delta", delta=rest)
            yield self._of(block, "response.custom_tool_call_input.done", input=told)
        elif kind == PICTURE:
            yield self._of(block, f"response.{PICTURE}.completed")
        elif kind is None:
            said = {"refusal" if block.kind == "refusal" else "text": block.text}
            name = f"response.{_PARTS[block.kind]}.done"
            yield self._of(block, name, content_index=0, **said, **_likely(block))
            part = _part(block, block.text)
            yield self._of(block, "response.content_part.done", content_index=0, part=part)
        item = self._item(block, self._status_of(block))
        yield self._format_event("response.output_item.done", output_index=block.index, item=item)

    def _tell_rest(self) -> Iterator[bytes]:
        """Tell a provider's words on why it refuses, too, where the model has said none."""
        yield from super()._tell_rest()
        words = (self.details or {}).get("explanation")
        if words and isinstance(words, str) and all(b.kind != "refusal" for b in self.blocks):
            yield from self._tell("refusal", None, ContentPiece("refusal", words))

    def on_finish(self) -> Iterator[bytes]:
        response = self.document()
        yield self._format_event(f"response.{response['status']}", response=response)

    def on_error(self, error: dict[str, Any]) -> Iterator[bytes]:
        yield from self._start_once()
        message, code = str(error.get("message")), error.get("code")
        yield self._format_event("error", code=code, message=message, param=None)
        self._failure = message

    def failed_document(self) -> dict[str, Any] | None:
        if self._failure is None:
            return None
        response = self.state_document("failed", self._failure)
        response["output"] = [
            self._item(block, "completed" if block.closed else "incomplete")
            for block in self.blocks
        ]
        return response

    def end_stream(self) -> bytes:
        """Return the last events; a failed answer ends after it was stored as far as it came."""
        response, self._failure = self.failed_document(), None
        if response is None:
            return super().end_stream()
        return self._format_event("response.failed", response=response)

    def end_cancelled(self) -> bytes:
        """Return what a stored answer that was cancelled is told by, too."""
        if self._over:
            return b""
        self._over = True
        begun, response = b"".join(self._start_once()), self.state_document("cancelled")
        return begun + self._format_event("response.cancelled", response=response)

    def document(self) -> dict[str, Any]:
        for block in filter(self._lacks_arguments, self.blocks):
            block.parts.append(NO_ARGUMENTS)
        cause = _INCOMPLETE.get(self.reason)
        response = self._response("completed" if cause is None else "incomplete")
        response["incomplete_details"] = None if cause is None else {"reason": cause}
        response["output"] = [self._item(block, self._status_of(block)) for block in self.blocks]
        response["usage"] = usage(self.tokens)
        if cause is None:
            response["completed_at"] = self._created_s + self.elapsed_s
        return response

    def _response(self, status: str) -> dict[str, Any]:
        response = {
            "id": f"resp_{self._name}",
            "object": "response",
            "created_at": self._created_s,
            "status": status,
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            "model": self.model,
            "output": [],
            "usage": None,
            **_DEFAULTS,
            **self._echo,
        }
        if self.tier is not None:
            response["service_tier"] = self.tier
        return response

    def _item(self, block: ContentBlock, status: str, *, empty: bool = False) -> dict[str, Any]:
        item: dict[str, Any] = {"id": self._item_id(block), "status": status}
        text = "" if empty else block.text
        if block.kind == "call":
            return item | self._call_members(block, text)
        if block.kind == "picture":
            return item | {"type": PICTURE, "result": text or None}
        content = [] if empty else [_part(block, text)]
        if block.kind == "reasoning":
            return item | {"type": "reasoning", "summary": [], "content": content}
        return item | {"type": "message", "role": "assistant", "content": content}

    def _call_members(self, block: ContentBlock, told: str) -> dict[str, Any]:
        kind = self._kind_of(block)
        if kind == FUNCTION:
            named = {"call_id": block.id, **self._name_members(block)}
            return {"type": "function_call", **named, "arguments": told}
        if kind == CUSTOM:
            named = {"call_id": block.id, **self._name_members(block)}
            return {"type": "custom_tool_call", **named, INPUT: custom_input(told)}
        return {"call_id": block.id, **call_members(str(kind), told)}

    def _take_logprobs(self, block: ContentBlock, text: str) -> dict[str, Any]:
        """Return the log probabilities of a text's delta; other blocks have none."""
        if block.kind != "text":
            if self._begun:  # a whole answer has all of them at once
                self._likely.clear()
            return {}
        told, self._likely = self._likely, []
        if told and not self._begun and len(self.blocks) > 1:
            told = tokens_of_text(told, text)
        block.logprobs += told
        return {"logprobs": told}

    def _kind_of(self, block: ContentBlock) -> str | None:
        """Return the type of the tool that the block calls; None where it calls none.

        A picture counts as a call of OpenAI's picture tool.
        """
        if block.kind != "call":
            return PICTURE if block.kind == "picture" else None
        tool = self._tools.get(block.name)
        return FUNCTION if tool is None else tool.kind

    def _name_members(self, block: ContentBlock) -> dict[str, str]:
        tool = self._tools.get(block.name)
        if tool is None:
            return {"name": block.name}
        named = {"name": tool.name}
        return named if tool.namespace is None else {**named, "namespace": tool.namespace}

    def _lacks_arguments(self, block: ContentBlock) -> bool:
        """Return whether a finished call has no arguments; clients need valid JSON there."""
        empty = self._kind_of(block) == FUNCTION and not block.text.strip()
        return empty and self._status_of(block) == "completed"

    def _status_of(self, block: ContentBlock) -> str:
        """Return a block's status: `incomplete` where the token limit cut it."""
        cut = self.reason in _INCOMPLETE and block is self.blocks[-1] and block.kind != "picture"
        return "incomplete" if cut else "completed"

    def _item_id(self, block: ContentBlock) -> str:
        kind = self._kind_of(block)
        if kind in (None, FUNCTION, PICTURE):
            prefix = _PREFIXES[block.kind]
        else:
            prefix = _CUSTOM_PREFIX if kind == CUSTOM else CLIENT_TOOLS[kind].prefix
        return f"{prefix}_{self._name}_{block.index}"

    def _of(self, block: ContentBlock, name: str, /, **members: Any) -> bytes:
        item_id = self._item_id(block)
        return self._format_event(name, item_id=item_id, output_index=block.index, **members)

    def _format_event(self, name: str, /, **members: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        if self._noted is not None:
            note_event(self._noted, name, members)
        return event(name, {"type": name, "sequence_number": number, **members})


def usage(tokens: TokenCounts) -> dict[str, Any]:
    written = tokens.cache_write + tokens.cache_write_1h
    given = prompt_tokens(tokens)
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": written},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": given + tokens.output,
    }


def _part(block: ContentBlock, text: str) -> dict[str, Any]:
    if block.kind == "refusal":
        return {"type": "refusal", "refusal": text}
    part: dict[str, Any] = {"type": _PARTS[block.kind], "text": text}
    if block.kind == "text":
        part["annotations"] = [_annotation(citation) for citation in block.citations]
    return part | _likely(block)


def _annotation(citation: UrlCitation) -> dict[str, Any]:
    place = {"start_index": citation.start, "end_index": citation.end}
    return {"type": "url_citation", "url": citation.url, "title": citation.title, **place}


def _likely(block: ContentBlock) -> dict[str, Any]:
    """Return the `logprobs` member of a text; clients expect it even if it is empty."""
    return {"logprobs": block.logprobs} if block.kind == "text" else {}
