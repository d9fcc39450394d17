"""Anthropic's request as a chat request: what is translated, left out, passed on and refused."""

import json

import pytest

from gateway.errors import RequestError, body
from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.request.dialects.messages import COUNT_TOKENS, MESSAGES

ASK = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOL = {"name": "look", "description": "Looks", "input_schema": SCHEMA}
FUNCTION = {"name": "look", "description": "Looks", "parameters": SCHEMA}


def heard(dialect=MESSAGES, **members: object) -> dict:
    found = dialect.decode_request(decode_members(json.dumps({**ASK, **members}).encode()))
    read_chat(found.members, max_n=8, session=None)  # chat takes it
    return {name: json.loads(bytes(value)) for name, value in found.members.items()}


def without(document: dict, *names: str) -> dict:
    return {name: value for name, value in document.items() if name not in names}


def test_the_least_request() -> None:
    assert heard() == ASK


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"stop_sequences": ["a", "b"]}, {"stop": ["a", "b"]}),
        ({"stop_sequences": []}, {}),
        ({"temperature": 0.5, "top_p": 0.9}, {"temperature": 0.5, "top_p": 0.9}),
        ({"top_k": 5, "ignore_eos": True}, {"top_k": 5, "ignore_eos": True}),
        ({"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}),
        ({"stream": False}, {"stream": False}),
        ({"tools": [TOOL]}, {"tools": [{"type": "function", "function": FUNCTION}]}),
        (
            {
                "tools": [
                    {**TOOL, "type": "custom", "strict": True, "cache_control": {"type": "x"}}
                ],
                "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
            },
            {
                "tools": [{"type": "function", "function": {**FUNCTION, "strict": True}}],
                "tool_choice": "required",
                "parallel_tool_calls": False,
            },
        ),
        (
            {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "look"}},
            {
                "tools": [{"type": "function", "function": FUNCTION}],
                "tool_choice": {"type": "function", "function": {"name": "look"}},
            },
        ),
        ({"tools": [], "tool_choice": {"type": "auto"}}, {}),
        (
            {"output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {}}}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": {}, "strict": True},
                }
            },
        ),
        # Advice for Anthropic's own service.
        (
            {
                "thinking": {"type": "enabled", "budget_tokens": 2000},
                "metadata": {"user_id": "u"},
                "service_tier": "standard_only",
                "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
                "inference_geo": "global",
                "cache_control": {"type": "ephemeral"},
            },
            {},
        ),
        # Said without saying anything.
        ({"container": None, "mcp_servers": [], "stop": None}, {}),
    ],
)
def test_members(asked: dict, expected: dict) -> None:
    assert without(heard(**asked), *ASK) == expected


def test_advice_that_is_left_out_is_named() -> None:
    asked = {
        "thinking": {"type": "enabled", "budget_tokens": 2000}, "metadata": {"user_id": "u"},
        "service_tier": None, "context_management": {"edits": [{"type": "clear_tool_uses_1"}]},
        "output_config": {"effort": "high"},
    }  # fmt: skip
    members = decode_members(json.dumps({**ASK, **asked}).encode())
    left = ("context_management", "metadata.user_id", "output_config.effort", "thinking")
    assert MESSAGES.decode_request(members).ignored == left


@pytest.mark.parametrize(
    ("tier", "standard", "ignored"),
    [
        ("standard_only", True, ()),
        ("auto", False, ("service_tier",)),  # left to the target, as without one
        ("priority", False, ("service_tier",)),
        (None, False, ()),
    ],
)
def test_the_standard_tier_alone_is_wanted_in_every_dialect(tier, standard, ignored) -> None:
    members = decode_members(json.dumps({**ASK, "service_tier": tier}).encode())
    found = MESSAGES.decode_request(members)
    assert (found.standard_tier, found.ignored) == (standard, ignored)
    counted = {name: value for name, value in members.items() if name != "max_tokens"}
    assert not COUNT_TOKENS.decode_request(counted).standard_tier  # nothing is answered


def test_instructions_come_first() -> None:
    assert heard(system="be brief")["messages"][0] == {"role": "system", "content": "be brief"}


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"n": 2}, "n"),
        ({"store": True}, "store"),
        ({"previous_response_id": "x"}, "previous_response_id"),
        ({"container": "c"}, "container"),
        ({"mcp_servers": [{"url": "x"}]}, "mcp_servers"),
        ({"inference_geo": "us"}, "inference_geo"),
        ({"context_management": {"edits": [{"type": "compact_1"}]}}, "context_management.edits[0]"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0]"),
        ({"tools": [{"name": "look"}]}, "tools[0].input_schema"),
        ({"tool_choice": {"type": "all"}}, "tool_choice.type"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"output_config": {"format": {"type": "yaml"}}}, "output_config.format.type"),
        ({"stop_sequences": "x"}, "stop_sequences"),
    ],
)
def test_refused(asked: dict, place: str) -> None:
    with pytest.raises(RequestError) as caught:
        heard(**asked)
    assert caught.value.row.status == 400
    assert caught.value.param == place


def test_counting_needs_no_limit_and_is_never_streamed() -> None:
    found = heard(COUNT_TOKENS, max_tokens=None, tools=[TOOL])
    assert COUNT_TOKENS.purpose == "count"
    assert MESSAGES.purpose == "answer"
    assert without(found, "tools") == without(ASK, "max_tokens")


def test_a_session_is_whom_the_metadata_name() -> None:
    text = json.dumps({**ASK, "metadata": {"user_id": "u1"}}).encode()
    assert MESSAGES.decode_request(decode_members(text)).session == "u1"


@pytest.mark.parametrize(
    ("kind", "status", "told"),
    [
        ("bad_request", 400, "invalid_request_error"),
        ("bad_key", 401, "authentication_error"),
        ("forbidden", 403, "permission_error"),
        ("no_model", 404, "not_found_error"),
        ("method", 405, "invalid_request_error"),
        ("too_large", 413, "request_too_large"),
        ("budget", 429, "rate_limit_error"),
        ("internal", 500, "api_error"),
        ("upstream", 502, "api_error"),
        ("overloaded", 503, "overloaded_error"),
        ("timeout", 504, "timeout_error"),
    ],
)
def test_errors(kind: str, status: int, told: str) -> None:
    error = RequestError(kind, "Leave `stop` out; `response_format` too.")
    assert error.row.status == status
    document = json.loads(MESSAGES.translate_error(body(error), status, "req_1"))
    message = "Leave `stop_sequences` out; `output_config.format` too."
    error = {"type": told, "message": message}
    assert document == {"type": "error", "error": error, "request_id": "req_1"}


def test_its_clients_look_for_a_header() -> None:
    assert list(MESSAGES.headers("req_1")) == [(b"request-id", b"req_1")]


def test_marks_of_what_to_cache_are_for_those_that_take_them() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    asked = {
        **ASK,
        "system": [{"type": "text", "text": "be brief", **mark}],
        "tools": [{**TOOL, **mark}],
    }
    found = MESSAGES.decode_request(decode_members(json.dumps(asked).encode()))
    assert not any(b"cache_control" in bytes(value) for value in found.members.values())
    given = {name: json.loads(bytes(value)) for name, value in found.marked.items()}
    assert given["tools"] == [{"type": "function", "function": FUNCTION, **mark}]
    assert given["messages"][0] == {"role": "system", "content": asked["system"]}
    assert MESSAGES.decode_request(decode_members(json.dumps(ASK).encode())).marked == {}


@pytest.mark.parametrize(
    ("block", "named"),
    [
        ({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}, False),
        ({"type": "text", "text": "x", "cache_control": None}, False),
        ({"type": "thinking", "thinking": "x", "signature": "s",
          "cache_control": {"type": "ephemeral"}}, True),
    ],
)  # fmt: skip
def test_a_mark_that_chat_has_no_place_for_is_named(block, named) -> None:
    messages = [
        {"role": "user", "content": "a"}, {"role": "assistant", "content": [block]},
        {"role": "user", "content": "b"},
    ]  # fmt: skip
    body = {"model": "m", "max_tokens": 5, "messages": messages}
    asked = MESSAGES.decode_request(decode_members(json.dumps(body).encode()))
    assert ("messages.cache_control" in asked.ignored) is named
