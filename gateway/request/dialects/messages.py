"""Anthropic's `/v1/messages`, decoded as a chat completion.

What chat can express is translated. Advice to Anthropic's service (thinking, effort) is left to the
target's default. What would be lost is refused by name. Cache marks go to targets that take them.
Unknown members pass unchanged, as in chat. Chat's own members are refused: an answer has one text,
and no client should pay for two. `metadata.user_id` is the session for stickiness, and is sent to
no target that uses chat.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from gateway.errors import RequestError, invalid_error
from gateway.http.body import Members, decode_member, encode_raw
from gateway.http.connection import Header
from gateway.kinds.native_request import METADATA, USER, NativeRequest
from gateway.kinds.request_checks import refuse_long_caches
from gateway.kinds.service_tiers import TIER_MEMBER
from gateway.request.dialects.base import DecodedRequest, Purpose
from gateway.request.dialects.conversation import MARK, Medium, media_levels
from gateway.request.dialects.fields import (
    OF_CHAT,
    decode_whole_member,
    iterate_objects,
    mapping,
    missing_error,
    optional_text,
    refuse_members,
    text,
    type_of,
    unsupported,
)
from gateway.request.dialects.messages_encoder import MessagesEncoder, error_document
from gateway.request.dialects.messages_input import MessagesConversation, conversation
from gateway.request.dialects.messages_tools import MessagesTool, declared_tools, searches_tools
from gateway.request.dialects.native_messages import native_request, whole_request
from gateway.request.dialects.response_encoder import encode
from router.types import Feature

_SET_MARK: Final = re.compile(rb'"cache_control"\s*+:\s*+(?!null)')
_ADVICE = frozenset(
    {
        "cache_control", "diagnostics", "metadata", "service_tier", "speed", "thinking",
        "user_profile_id", "workspace_id",
    }
)  # fmt: skip
_READ = frozenset(
    {
        "system", "messages", "max_tokens", "stop_sequences", "tools", "tool_choice",
        "output_config", "output_format", "context_management", "inference_geo",
    }
)  # fmt: skip
_REFUSED_BY_CHAT = {
    "container": "no target here keeps a container. Leave it out.",
    "mcp_servers": "the gateway calls no tool servers. Declare their tools in `tools`.",
}
_REFUSED = {
    "fallbacks": "the gateway's own policy says which target is next. Leave it out.",
    **dict.fromkeys(
        (
            "n", "stop", "logprobs", "top_logprobs", "response_format", "max_completion_tokens",
            "functions", "function_call", "stream_options", "parallel_tool_calls", "modalities",
            "audio", "prediction", "store", "reasoning_effort",
        ),
        OF_CHAT,
    ),
}  # fmt: skip
_KNOWN = _READ | _ADVICE | _REFUSED.keys() | _REFUSED_BY_CHAT.keys()
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_STANDARD_ONLY: Final = "standard_only"
_MARKED = frozenset(("cache_control", "messages", "system", "tools"))
_HERE = {  # names in chat's errors, and here
    "stop": "stop_sequences",
    "response_format": "output_config.format",
}


PING: Final = b'event: ping\ndata: {"type": "ping"}\n\n'


class MessagesDialect:
    """Anthropic's `/v1/messages`.

    With `counts`, it is `/v1/messages/count_tokens`, which has no `max_tokens` and no answer.
    """

    def __init__(self, *, counts: bool = False) -> None:
        self._counts = counts

    @property
    def purpose(self) -> Purpose:
        return "count" if self._counts else "answer"

    @property
    def continues(self) -> bool:
        return False

    @property
    def ping(self) -> bytes:
        return PING

    def count_document(self, tokens: int) -> dict[str, Any]:
        return {"input_tokens": tokens}

    def decode_request(self, members: Members) -> DecodedRequest:
        refuse_members(members, _REFUSED | _REFUSED_BY_CHAT)
        _check_place(members)
        _check_advice(members)
        heard = {name: value for name, value in members.items() if name not in _KNOWN}
        found = conversation(
            decode_whole_member(members, "system"), decode_whole_member(members, "messages")
        )
        if not self._counts:
            if decode_member(members, "max_tokens", int) is None:
                raise missing_error("max_tokens")
            heard["max_tokens"] = members["max_tokens"]
            if decode_member(members, "stream", bool, False):
                heard["stream_options"] = encode_raw({"include_usage": True})
        stops = decode_member(members, "stop_sequences", list[str])
        if stops:
            heard["stop"] = encode_raw(stops)
        given = decode_whole_member(members, "tools")
        tools = declared_tools(given, found.added, found.removed)
        heard |= _tools(members, tools) | _format(members)
        metadata = mapping(decode_whole_member(members, "metadata") or {}, "metadata")
        session = optional_text(metadata.get("user_id"), "metadata.user_id")
        left = _left_out(members) | found.left_out
        left.update(name for tool in tools for name in tool.left_out)
        if searches_tools(given, found.added):
            left.add("tools.tool_search_tool")
        standard = not self._counts and _is_standard(members)
        if standard:  # the target's own tier is left out; it is listed where it has no name
            left.discard(TIER_MEMBER)
        asked = DecodedRequest(
            heard, _voice, session, ignored=tuple(sorted(left)), standard_tier=standard
        )
        return _with_messages(asked, found, tools, marks=_marks_in(members))

    def whole_request(self, members: Members, refusal: RequestError) -> DecodedRequest | None:
        refuse_members(members, _REFUSED)
        _check_place(members)
        if not self._counts and decode_member(members, "max_tokens", int) is None:
            raise missing_error("max_tokens")
        for name in _MARKED.intersection(members):
            refuse_long_caches(bytes(members[name]), name)
        whole = whole_request(members, refusal)
        if whole is None:
            return None
        return DecodedRequest(
            whole.members, _voice, whole.session, features=whole.features, native=whole.native
        )

    def native_request(self, members: Members) -> NativeRequest | None:
        return native_request(members)

    def translate_error(
        self, body: bytes, status: int, request_id: str, *, of_chat: bool = True
    ) -> bytes:
        error = msgspec.json.decode(body).get("error") or {}
        told = str(error.get("message"))
        for chats, ours in _HERE.items() if of_chat else ():
            told = told.replace(f"`{chats}`", f"`{ours}`")
        return encode(error_document(status, told, request_id))

    def headers(self, request_id: str) -> Sequence[Header]:
        return [(b"request-id", request_id.encode())]


def _with_messages(
    asked: DecodedRequest,
    found: MessagesConversation,
    tools: Sequence[MessagesTool],
    *,
    marks: Mapping[str, int],
) -> DecodedRequest:
    """Return the request with its conversation, and with less media where no target reads all.

    `marks` are the numbers of cache marks. Marks on blocks without a place in chat are ignored by
    name.
    """
    less: DecodedRequest | None = None
    for without in media_levels(found.turns.media):
        features = {Feature.FILES: found.needs_file} if found.needs_file else {}
        if "file" in found.turns.media - without:
            features.setdefault(Feature.FILES, "messages")
        names = {f"messages.{'document' if medium == 'file' else medium}" for medium in without}
        told = found.turns.messages(without=without)
        less = replace(
            asked,
            members={**asked.members, "messages": encode_raw(told)},
            marked={},
            ignored=tuple(sorted({*asked.ignored, *names})),
            features=features,
            instead=less,
        )
        if any(marks.values()):
            marked = _marked_members(less.members, found, tools, without)
            kept = _count_marks(bytes(marked.get("messages", b"")))
            lost = (f"messages.{MARK}",) if kept < marks["system"] + marks["messages"] else ()
            less = replace(less, marked=marked, ignored=tuple(sorted({*less.ignored, *lost})))
    assert less is not None
    return less


def _marks_in(members: Members) -> dict[str, int]:
    """Return the number of cache marks by member; most requests have none."""
    given = ("system", "messages", "tools")
    return {name: _count_marks(bytes(members.get(name, b""))) for name in given}


def _count_marks(text: bytes) -> int:
    return len(_SET_MARK.findall(text)) if MARK.encode() in text else 0


def _marked_members(
    plain: Members,
    found: MessagesConversation,
    tools: Sequence[MessagesTool],
    without: Collection[Medium],
) -> Members:
    """Return the members that have cache marks, with them."""
    with_marks: dict[str, Any] = {"messages": found.turns.messages(marks=True, without=without)}
    if tools:
        with_marks["tools"] = [tool.marked for tool in tools]
    marked = {name: encode_raw(value) for name, value in with_marks.items()}
    for name, value in marked.items():
        refuse_long_caches(bytes(value), name)
    return {name: value for name, value in marked.items() if value != plain.get(name)}


def _left_out(members: Members) -> set[str]:
    """Return the names of advice that is not passed on, including the session's."""
    given = _ADVICE.intersection(members) - {METADATA}
    left = {name for name in given if bytes(members[name]) != b"null"}
    for name, value in mapping(decode_whole_member(members, METADATA) or {}, METADATA).items():
        if value is not None:
            left.add(f"{METADATA}.{name}" if name == USER else METADATA)
    if mapping(decode_whole_member(members, "context_management") or {}, "").get("edits"):
        left.add("context_management")
    config = mapping(decode_whole_member(members, "output_config") or {}, "")
    left |= {
        f"output_config.{name}" for name, value in config.items() if value and name != "format"
    }
    return left


def _is_standard(members: Members) -> bool:
    """Return whether only the standard tier may serve it; `auto` leaves that to the target."""
    return bool(decode_member(members, TIER_MEMBER, Any) == _STANDARD_ONLY)


def _voice(request_id: str, _: int) -> MessagesEncoder:
    return MessagesEncoder(request_id)


def _check_place(members: Members) -> None:
    """Refuse a place of inference, which key, model and policy decide, and which has a price."""
    geo = optional_text(decode_whole_member(members, "inference_geo"), "inference_geo")
    if geo not in (None, "global"):
        raise unsupported(
            "inference_geo",
            "the key, the model and its policy (`residency`) decide where a request is processed. "
            "Leave it out.",
        )


def _check_advice(members: Members) -> None:
    """Check a member that may only be left out in some forms."""
    management = mapping(
        decode_whole_member(members, "context_management") or {}, "context_management"
    )
    for where, edit in iterate_objects(management.get("edits") or [], "context_management.edits"):
        kind = text(edit.get("type"), f"{where}.type")
        if not kind.startswith("clear_"):  # clearing only saves tokens
            raise unsupported(where, f"`{kind}` is not supported. Leave it out.")


def _tools(members: Members, tools: Sequence[MessagesTool]) -> Members:
    found: dict[str, Any] = {}
    if tools:
        found["tools"] = [tool.function for tool in tools]
    choice = decode_whole_member(members, "tool_choice")
    if choice is not None:
        chosen = mapping(choice, "tool_choice")
        kind = type_of(chosen, "tool_choice")
        if kind == "tool":
            name = text(chosen.get("name"), "tool_choice.name")
            found["tool_choice"] = {"type": "function", "function": {"name": name}}
        elif kind in _CHOICES:
            found["tool_choice"] = _CHOICES[str(kind)]
        else:
            raise invalid_error("tool_choice.type", "must be `auto`, `any`, `tool` or `none`.")
        if chosen.get("disable_parallel_tool_use") is True:
            found["parallel_tool_calls"] = False
        if not tools:  # chat refuses a choice without tools
            found.clear()
    return {name: encode_raw(value) for name, value in found.items()}


def _format(members: Members) -> Members:
    """Return the answer's format, from `output_config` or the beta's own member."""
    config = mapping(decode_whole_member(members, "output_config") or {}, "output_config")
    place, shape = "output_config.format", config.get("format")
    if shape is None:
        place, shape = "output_format", decode_whole_member(members, "output_format")
    if shape is None:
        return {}
    shape = mapping(shape, place)
    if shape.get("type") != "json_schema":
        raise invalid_error(f"{place}.type", "must be `json_schema`.")
    schema = mapping(shape.get("schema"), f"{place}.schema")
    inner = {"name": "answer", "schema": schema, "strict": True}
    return {"response_format": encode_raw({"type": "json_schema", "json_schema": inner})}


MESSAGES: Final = MessagesDialect()
COUNT_TOKENS: Final = MessagesDialect(counts=True)
