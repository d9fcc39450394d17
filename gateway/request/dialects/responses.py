"""OpenAI's `/v1/responses`, heard as a chat completion.

What a request goes on from is in its `input` before it comes here (`gateway.request.store`); the
answer repeats what it was. What chat has under another name is renamed; its other members, and
those that nobody here knows, go on untouched. Tools that run at OpenAI are refused by their place;
a search that is offered beside functions is left out, as agents offer it with whatever they ask.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from gateway.http.body import Members, decode_member, encode_raw
from gateway.http.connection import Header
from gateway.request.dialects.base import DecodedRequest, Purpose
from gateway.request.dialects.fields import (
    OF_CHAT,
    decode_whole_member,
    invalid_error,
    iterate_objects,
    mapping,
    optional_text,
    refuse_members,
    text,
    unsupported,
)
from gateway.request.dialects.response_encoder import encode
from gateway.request.dialects.responses_encoder import ResponsesEncoder
from gateway.request.dialects.responses_input import chat_messages, flat_name

SEARCH = "web_search"  # `web_search_preview`, and with the day it came
_REFUSED: Final[Mapping[str, str]] = {
    "prompt": "no prompt is kept here. Send its text in `instructions` and `input`.",
    "context_management": "the conversation is sent as it is. Leave it out.",
    "moderation": "the gateway moderates nothing. Leave it out.",
    "top_logprobs": "log probabilities are told by chat completions only. Leave it out.",
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
        "truncation", "include", "store", "previous_response_id", "conversation", "background",
    }
)  # fmt: skip
_ADVICE = frozenset(
    {
        "client_metadata", "max_tool_calls", "metadata", "prompt_cache_options", "stream_options",
        "access_programs",
    }
)  # fmt: skip
_ECHOED = (
    "background", "conversation", "frequency_penalty", "instructions", "max_output_tokens",
    "max_tool_calls", "metadata", "parallel_tool_calls", "presence_penalty",
    "previous_response_id", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
    "store", "temperature", "tool_choice", "top_logprobs", "top_p", "truncation", "user",
)  # fmt: skip
_TOOL_DEFAULTS: Final = {"description": None, "parameters": None, "strict": False}
_HERE = {  # what chat's errors name, by its name here
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
}


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

    def count_document(self, tokens: int) -> dict[str, Any]:
        return {"object": "response.input_tokens", "input_tokens": tokens}

    def decode_request(self, members: Members) -> DecodedRequest:
        refuse_members(members, _REFUSED)
        _check(members)
        left_out = _READ | _ADVICE | _REFUSED.keys()
        heard = {name: value for name, value in members.items() if name not in left_out}
        instructions = optional_text(decode_whole_member(members, "instructions"), "instructions")
        heard["messages"] = encode_raw(
            chat_messages(instructions, decode_whole_member(members, "input"))
        )
        if decode_member(members, "max_output_tokens", int) is not None:
            heard["max_tokens"] = members["max_output_tokens"]
        if decode_member(members, "stream", bool, False):
            heard["stream_options"] = encode_raw({"include_usage": True})
        functions = list(_functions(members))
        heard |= _tools(members, functions) | _style(members)
        echo = _echo(members)
        session = decode_member(members, "prompt_cache_key", str)
        spaces = {
            function.told["name"]: function.origin
            for function in functions
            if function.origin is not None
        }
        return DecodedRequest(heard, partial(ResponsesEncoder, echo=echo, spaces=spaces), session)

    def translate_error(
        self, body: bytes, status: int, request_id: str, *, of_chat: bool = True
    ) -> bytes:
        """The same shape as chat's, with this dialect's names."""
        del status, request_id  # told by the answer's head
        if not of_chat:
            return body
        error = dict(msgspec.json.decode(body).get("error") or {})
        message, param = str(error.get("message")), str(error.get("param") or "")
        for chats, ours in _HERE.items():
            message = message.replace(f"`{chats}`", f"`{ours}`")
        root = param.partition("[")[0].partition(".")[0]
        if root in _HERE:
            error["param"] = _HERE[root]
        return encode({"error": {**error, "message": message}})

    def headers(self, request_id: str) -> Sequence[Header]:
        del request_id  # every answer has it
        return ()


def _echo(members: Members) -> dict[str, Any]:
    """What an answer repeats of its request, each member with all that its schema requires."""
    echo: dict[str, Any] = {
        name: members[name]
        for name in _ECHOED
        if name in members and bytes(members[name]) != b"null"
    }
    reasoning = decode_whole_member(members, "reasoning")
    if isinstance(reasoning, dict):
        echo["reasoning"] = {"effort": None, "summary": None, **reasoning}
    config = decode_whole_member(members, "text")
    if isinstance(config, dict):
        shape = config.get("format") or {"type": "text"}
        if isinstance(shape, dict) and shape.get("type") == "json_schema":
            shape = {"description": None, "strict": False, **shape}
        echo["text"] = {**config, "format": shape}
    tools = decode_whole_member(members, "tools")
    if isinstance(tools, list):
        echo["tools"] = [
            {**_TOOL_DEFAULTS, **tool} if _is_function(tool) else tool for tool in tools
        ]
    tier = decode_whole_member(members, "service_tier")
    if isinstance(tier, str) and tier != "auto":
        echo["service_tier"] = tier
    return echo


def _is_function(tool: Any) -> bool:
    return isinstance(tool, dict) and tool.get("type") == "function"


def _check(members: Members) -> None:
    """What may only be left out in some of its forms."""
    if optional_text(decode_whole_member(members, "truncation"), "truncation") not in (
        None,
        "disabled",
    ):
        raise unsupported("truncation", "the conversation is sent as it is. Send `disabled`.")
    for index, item in enumerate(decode_member(members, "include", list[str], [])):
        if item.endswith("logprobs"):
            why = "log probabilities are told by chat completions only. Leave it out."
            raise unsupported(f"include[{index}]", why)


class _Function(NamedTuple):
    """As chat is told it; `origin`: its namespace and its name there."""

    told: dict[str, Any]
    origin: tuple[str, str] | None = None


def _functions(members: Members) -> Iterator[_Function]:
    given = decode_whole_member(members, "tools")
    declared = [] if given is None else list(iterate_objects(given, "tools"))
    beside = any(tool.get("type") in ("function", "namespace") for _, tool in declared)
    for where, tool in declared:
        if tool.get("type") == "namespace":
            space = text(tool.get("name"), f"{where}.name")
            for inner, entry in iterate_objects(tool.get("tools"), f"{where}.tools"):
                told = _tool(entry, inner)
                name = told["name"]
                yield _Function({**told, "name": flat_name(space, name)}, (space, name))
        elif not (beside and str(tool.get("type")).startswith(SEARCH)):
            yield _Function(_tool(tool, where))


def _tools(members: Members, functions: Sequence[_Function]) -> Members:
    choice = decode_whole_member(members, "tool_choice")
    if not functions:  # there is nothing to choose from, and chat refuses to choose
        return {}
    told = [{"type": "function", "function": function.told} for function in functions]
    found: dict[str, Any] = {"tools": told}
    if isinstance(choice, str):
        found["tool_choice"] = choice
    elif choice is not None:
        chosen = mapping(choice, "tool_choice")
        if chosen.get("type") != "function":
            kind = chosen.get("type")
            raise unsupported("tool_choice", f"a choice of type `{kind}` is not made here.")
        name = text(chosen.get("name"), "tool_choice.name")
        found["tool_choice"] = {"type": "function", "function": {"name": name}}
    return {name: encode_raw(value) for name, value in found.items()}


def _tool(tool: Mapping[str, Any], place: str) -> dict[str, Any]:
    kind = tool.get("type")
    if kind != "function":
        raise unsupported(
            place,
            f"tools of type `{kind}` belong to OpenAI's own service. Declare a `function`, or "
            "leave it out.",
        )
    function: dict[str, Any] = {"name": text(tool.get("name"), f"{place}.name")}
    optional_text(tool.get("description"), f"{place}.description")
    if tool.get("parameters") is not None:
        mapping(tool["parameters"], f"{place}.parameters")
    for name in ("description", "parameters", "strict"):
        if tool.get(name) is not None:
            function[name] = tool[name]
    return function


def _style(members: Members) -> Members:
    """The form of the answer and how much thought goes into it."""
    found: dict[str, Any] = {}
    config = mapping(decode_whole_member(members, "text") or {}, "text")
    shape = mapping(config.get("format") or {"type": "text"}, "text.format")
    kind = shape.get("type")
    if kind == "json_schema":
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
