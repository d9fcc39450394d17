"""OpenAI's `/v1/responses`, decoded as a chat completion.

The history that a request continues is already in its `input` (`gateway.request.store`); the answer
repeats the id. Members with another name in chat are renamed; its other members, and unknown ones,
pass unchanged.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import msgspec

from gateway.errors import RequestError, invalid_error
from gateway.http.body import Members, decode_member, encode_raw
from gateway.http.connection import Header
from gateway.request.client_response import ClientResponse
from gateway.request.dialects.base import DecodedRequest, Purpose
from gateway.request.dialects.conversation import Message, media_levels
from gateway.request.dialects.fields import (
    OF_CHAT,
    decode_whole_member,
    mapping,
    metadata_of,
    optional_text,
    refuse_members,
)
from gateway.request.dialects.response_encoder import encode
from gateway.request.dialects.responses_echo import echo_of
from gateway.request.dialects.responses_encoder import ResponsesEncoder
from gateway.request.dialects.responses_input import ResponsesConversation, read_conversation
from gateway.request.dialects.responses_tools import declared_tools, tool_members
from gateway.request.dialects.truncation import drop_oldest
from router.types import Feature

_REFUSED: Final[Mapping[str, str]] = {
    "prompt": "no prompt is kept here. Send its text in `instructions` and `input`.",
    "context_management": "the conversation is sent as it is. Leave it out.",
    "moderation": "the gateway moderates nothing. Leave it out.",
    **dict.fromkeys(
        (
            "n", "messages", "max_tokens", "max_completion_tokens", "response_format", "logprobs",
            "functions", "function_call", "modalities", "audio", "prediction", "reasoning_effort",
            "verbosity",
        ),
        OF_CHAT,
    ),
}  # fmt: skip
_READ = frozenset(
    {
        "input", "instructions", "max_output_tokens", "tools", "tool_choice", "text", "reasoning",
        "truncation", "include", "top_logprobs", "store", "previous_response_id", "conversation",
        "background",
    }
)  # fmt: skip
_ADVICE = frozenset(
    {
        "client_metadata", "max_tool_calls", "metadata", "prompt_cache_options", "stream_options",
        "access_programs",
    }
)  # fmt: skip
_UNHEARD: Final = ("access_programs", "max_tool_calls", "prompt_cache_options")
_OPENED: Final = ("reasoning", "stream_options", "text")
_STYLE: Final = frozenset(("effort", "format", "verbosity"))
_NOTHING: Final = (b"null", b"[]", b"{}")
_LIKELY: Final = "message.output_text.logprobs"  # in `include`
_MOST_LIKELY: Final = 20  # alternatives per token, as OpenAI documents it
_HERE = {  # names in chat's errors, and here
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
}


# A place in chat's messages, whose numbers differ from those of the items.
_PLACE: Final = re.compile(r"`messages[\[.][^`]*`")
OLDEST: Final = "input.oldest"  # in `x-breakeven-ignored`: turns that `truncation` dropped


class ResponsesDialect:
    """One of the paths that take a Responses request, by its `purpose`."""

    def __init__(self, purpose: Purpose = "answer") -> None:
        self._purpose = purpose

    @property
    def purpose(self) -> Purpose:
        return self._purpose

    @property
    def continues(self) -> bool:
        return True

    @property
    def ping(self) -> bytes:
        return ClientResponse.ping

    def count_document(self, tokens: int) -> dict[str, Any]:
        return {"object": "response.input_tokens", "input_tokens": tokens}

    def decode_request(self, members: Members) -> DecodedRequest:
        refuse_members(members, _REFUSED)
        metadata_of({"metadata": decode_whole_member(members, "metadata")})  # it is repeated
        left_out = _READ | _ADVICE | _REFUSED.keys()
        heard = {name: value for name, value in members.items() if name not in left_out}
        instructions = optional_text(decode_whole_member(members, "instructions"), "instructions")
        items = decode_whole_member(members, "input")
        found = read_conversation(instructions, items)
        if decode_member(members, "max_output_tokens", int) is not None:
            heard["max_tokens"] = members["max_output_tokens"]
        if decode_member(members, "stream", bool, False):
            heard["stream_options"] = encode_raw({"include_usage": True})
        tools = declared_tools(members, items)
        likely = _logprobs(members)
        heard |= tool_members(members, tools) | _style(members) | likely
        session = decode_member(members, "prompt_cache_key", str)
        called = {str(tool.function["name"]): tool.origin for tool in tools}
        voice = partial(ResponsesEncoder, echo=echo_of(members), tools=called)
        left = found.left_out | _left_out(members) | tools.left_out
        asked = DecodedRequest(
            heard, voice, session, ignored=tuple(sorted(left)),
            features={Feature.LOGPROBS: "top_logprobs" if "top_logprobs" in likely else "include"}
            if likely else {},
        )  # fmt: skip
        return _with_conversation(asked, found, cuts=_truncates(members))

    def whole_request(self, members: Members, refusal: RequestError) -> None:
        """Return None: no target has this API natively."""

    def native_request(self, members: Members) -> None:
        """Return None: no target has this API natively."""

    def translate_error(
        self, body: bytes, status: int, request_id: str, *, of_chat: bool = True
    ) -> bytes:
        """Return the error of a chat answer with this dialect's member names, as JSON."""
        del status, request_id  # in the answer's head
        if not of_chat:
            return body
        error = dict(msgspec.json.decode(body).get("error") or {})
        message, param = str(error.get("message")), str(error.get("param") or "")
        for chats, ours in _HERE.items():
            message = message.replace(f"`{chats}`", f"`{ours}`")
        message = _PLACE.sub("`input`", message)
        root = param.partition("[")[0].partition(".")[0]
        if root in _HERE:
            error["param"] = _HERE[root]
        return encode({"error": {**error, "message": message}})

    def headers(self, request_id: str) -> Sequence[Header]:
        del request_id  # every answer has it
        return ()


def _with_conversation(
    asked: DecodedRequest, found: ResponsesConversation, *, cuts: bool
) -> DecodedRequest:
    """Return the request with its conversation, and with less media where no target reads all.

    `cuts`: the oldest turns may be left out if no context holds the conversation.
    """
    less: DecodedRequest | None = None
    for without in media_levels(found.turns.media):
        features = dict(asked.features)
        if found.needs_file or "file" in found.turns.media - without:
            features[Feature.FILES] = found.needs_file or "input"
        names = {f"input.{medium}" for medium in without}
        told = found.turns.messages(without=without)
        less = replace(
            asked,
            members={**asked.members, "messages": encode_raw(told)},
            ignored=tuple(sorted({*asked.ignored, *names})),
            features=features,
            instead=less,
        )
        if cuts:
            less = replace(less, shorten=partial(_shortened, less, told))
    assert less is not None
    return less


def _shortened(
    asked: DecodedRequest, told: Sequence[Message], least_bytes: int
) -> DecodedRequest | None:
    """Return the request without its oldest turns; None where all must stay."""
    kept = drop_oldest(told, least_bytes)
    if kept is None:
        return None
    less = replace(
        asked,
        members={**asked.members, "messages": encode_raw(kept)},
        ignored=tuple(sorted({*asked.ignored, OLDEST})),
        instead=None,
    )
    return replace(less, shorten=partial(_shortened, less, kept))


def _truncates(members: Members) -> bool:
    asked = optional_text(decode_whole_member(members, "truncation"), "truncation")
    if asked not in (None, "auto", "disabled"):
        raise invalid_error("truncation", "must be `auto` or `disabled`.")
    return asked == "auto"


def _left_out(members: Members) -> set[str]:
    """Return the names of members that are neither passed on, handled here nor repeated."""
    left = {name for name in _UNHEARD if bytes(members.get(name, b"null")) not in _NOTHING}
    if set(decode_member(members, "include", list[str], [])) - {_LIKELY}:
        left.add("include")
    for name in _OPENED:
        given = mapping(decode_whole_member(members, name) or {}, name)
        left |= {f"{name}.{key}" for key, value in given.items() if value and key not in _STYLE}
    return left


def _logprobs(members: Members) -> Members:
    """Return chat's members for log probabilities, if the request asks for them."""
    most = decode_member(members, "top_logprobs", int, 0)
    if not 0 <= most <= _MOST_LIKELY:
        raise invalid_error("top_logprobs", f"must be from 0 to {_MOST_LIKELY}.")
    if not most and _LIKELY not in decode_member(members, "include", list[str], []):
        return {}
    told = {"logprobs": encode_raw(True)}
    return {**told, "top_logprobs": members["top_logprobs"]} if most else told


def _style(members: Members) -> Members:
    """Return the answer's format, reasoning effort and verbosity as chat members."""
    found: dict[str, Any] = {}
    config = mapping(decode_whole_member(members, "text") or {}, "text")
    shape = mapping(config.get("format") or {"type": "text"}, "text.format")
    kind = shape.get("type")
    if kind == "json_schema":
        mapping(shape.get("schema"), "text.format.schema")
        inner = {
            name: shape[name]
            for name in ("name", "description", "schema", "strict")
            if shape.get(name) is not None
        }
        found["response_format"] = {"type": "json_schema", "json_schema": inner}
    elif kind == "json_object":
        found["response_format"] = {"type": "json_object"}
    elif kind != "text":
        raise invalid_error("text.format.type", "must be `text`, `json_object` or `json_schema`.")
    reasoning = mapping(decode_whole_member(members, "reasoning") or {}, "reasoning")
    effort = optional_text(reasoning.get("effort"), "reasoning.effort")
    verbosity = optional_text(config.get("verbosity"), "text.verbosity")
    found |= {"reasoning_effort": effort} if effort else {}
    found |= {"verbosity": verbosity} if verbosity else {}
    return {name: encode_raw(value) for name, value in found.items()}


RESPONSES: Final = ResponsesDialect()
INPUT_TOKENS: Final = ResponsesDialect("count")
