"""The body that a target gets of what a client asked for."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.http.body import decode_members
from gateway.kinds import KIND_PATHS
from gateway.kinds.chat import read_chat
from gateway.kinds.inference_request import IncomingBody, InferenceRequest
from gateway.kinds.service_tiers import asked_tier
from gateway.request.request_parser import attempt_body, body_for

OLDER, NEWER = "max_tokens", "max_completion_tokens"
MESSAGES = [{"role": "user", "content": "hello"}]


def asked(path: str = "/v1/chat/completions", **members: Any) -> InferenceRequest:
    if path == "/v1/chat/completions":
        members.setdefault("messages", MESSAGES)
    text = json.dumps({"model": "m", **members}).encode()
    return KIND_PATHS[path].read(IncomingBody(text, "application/json", None, max_n=8))


@pytest.mark.parametrize("given", [5, None])
def test_an_engine_is_told_the_limit_by_the_name_that_each_reads(given: int | None) -> None:
    def limits(*, own: bool) -> dict[str, Any]:
        request = asked(max_completion_tokens=given)
        cap = None if given else 7
        body = body_for(request, upstream_model="u", own=own, max_tokens_cap=cap, salt=None)
        return {name: value for name, value in json.loads(body).items() if "max_" in name}

    assert limits(own=True) == {"max_tokens": given or 7}
    assert limits(own=False) == ({"max_completion_tokens": 5} if given else {"max_tokens": 7})


def test_a_cap_goes_by_the_name_that_the_target_knows() -> None:
    def capped(name: str, **members: Any) -> Any:
        body = body_for(
            asked(**members), upstream_model="u", own=False, max_tokens_cap=7, salt=None,
            cap_name=name,
        )  # fmt: skip
        return json.loads(body)

    assert capped("max_completion_tokens")["max_completion_tokens"] == 7
    assert capped("max_tokens")["max_tokens"] == 7
    # A target that does not know the newer name would answer without a limit.
    asked_for = capped("max_tokens", max_completion_tokens=None)
    assert asked_for["max_tokens"] == 7
    assert "max_completion_tokens" not in asked_for


def test_a_choice_among_some_tools_offers_an_engine_these_alone() -> None:
    """Red before: vLLM 0.32 refuses the choice, as it has no type for it."""
    tools = [{"type": "function", "function": {"name": name}} for name in "fg"]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": tools[:1]}}

    def told(choice: Any, *, own: bool) -> dict[str, Any]:
        request = asked(tools=tools, tool_choice=choice)
        body = body_for(request, upstream_model="u", own=own, max_tokens_cap=None, salt=None)
        return {name: json.loads(body)[name] for name in ("tools", "tool_choice")}

    assert told(choice, own=True) == {"tools": tools[:1], "tool_choice": "required"}
    assert told(choice, own=False) == {"tools": tools, "tool_choice": choice}
    odd = {"type": "allowed_tools", "allowed_tools": {"tools": []}}
    assert told(odd, own=True) == {"tools": tools, "tool_choice": odd}, "the engine says why not"


@pytest.mark.parametrize("given", [{}, {"max_tokens": None}, {"max_tokens": 5}])
def test_the_default_that_is_held_for_is_what_the_target_is_told(given: dict[str, Any]) -> None:
    """Not every target of completions has OpenAI's default."""
    request = asked("/v1/completions", prompt="hello", **given)
    for own in (False, True):
        body = body_for(request, upstream_model="u", own=own, max_tokens_cap=None, salt=None)
        assert json.loads(body)["max_tokens"] == (given.get("max_tokens") or 16)
    input_ = asked("/v1/embeddings", input="hello")
    told = body_for(input_, upstream_model="u", own=False, max_tokens_cap=None, salt=None)
    assert "max_tokens" not in json.loads(told)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({NEWER: 5}, {NEWER: 5, OLDER: 5}),
        ({NEWER: 5, OLDER: 7}, {NEWER: 5, OLDER: 7}),
        ({NEWER: 7, OLDER: None}, {NEWER: 7, OLDER: 7}),
        ({OLDER: 5}, {OLDER: 5}),
        ({}, {}),
        ({NEWER: None}, {}),
    ],
)
def test_a_target_that_does_not_know_the_newer_name_is_told_by_both(given, told) -> None:
    request = asked(**given).with_older_limit()
    body = body_for(request, upstream_model="u", own=False, max_tokens_cap=None, salt=None)
    limits = {name: value for name, value in json.loads(body).items() if "max_" in name}
    assert limits == told


@pytest.mark.parametrize(
    ("path", "given", "sent"),
    [
        ("/v1/chat/completions", {}, "Flex"),
        ("/v1/chat/completions", {"service_tier": None}, "Flex"),
        ("/v1/chat/completions", {"service_tier": "auto"}, "auto"),
        ("/v1/completions", {"prompt": "hello"}, "Flex"),
        ("/v1/embeddings", {"input": "hello"}, None),
        ("/v1/moderations", {"input": "hello"}, None),
    ],
)
def test_a_targets_tier_is_sent_where_the_client_names_none(path, given, sent) -> None:
    """Red before: `null` was sent in its place, and booked at the tier's rates; others refused."""
    request = asked(path, **given)
    tier = asked_tier(request.members)
    target = SimpleNamespace(
        tier="Flex", extra={}, speaks_messages=False, takes_marks=False, by_priority=False,
        template_arguments=True, upstream_model="u", own=False, provider="x", api="x",
    )  # fmt: skip
    step = SimpleNamespace(
        frozen=SimpleNamespace(
            target=target, told_twice=False, candidate=SimpleNamespace(output_cap=None)
        )
    )
    plan = SimpleNamespace(
        asked=request, request=SimpleNamespace(kind=request.kind, service_tier=tier)
    )
    body: dict[str, Any] = json.loads(attempt_body(plan, step))  # type: ignore[arg-type]
    assert body.get("service_tier") == sent


def test_an_own_engine_is_asked_for_running_usage() -> None:
    request = asked(stream=True, temperature=0.25)
    body = body_for(request, upstream_model="u", own=True, max_tokens_cap=None, salt="s")
    assert json.loads(body) == {
        "model": "u",
        "messages": MESSAGES,
        "stream": True,
        "temperature": 0.25,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "cache_salt": "s",
    }


def test_only_an_engine_is_told_later_instructions_in_the_users_turn() -> None:
    said = [*MESSAGES, {"role": "developer", "content": "be brief"}]
    for own in (False, True):
        body = body_for(
            asked(messages=said), upstream_model="u", own=own, max_tokens_cap=None, salt=None
        )
        inside = [{"role": "user", "content": "hello\n\nbe brief"}]
        assert json.loads(body)["messages"] == (inside if own else said)


def test_an_api_is_asked_for_final_usage_only() -> None:
    request = asked(stream=True, stream_options={"continuous_usage_stats": True, "x": 1})
    body = json.loads(body_for(request, upstream_model="u", own=False, max_tokens_cap=7, salt=None))
    assert body["stream_options"] == {"x": 1, "include_usage": True}
    assert body["max_tokens"] == 7
    assert "cache_salt" not in body


def test_the_clients_bytes_are_not_touched_otherwise() -> None:
    text = b'{"model":"m","messages":[ {"role":"user","content":"h\\u00e9 1.0e3"} ],"x":1.00}'
    request = read_chat(decode_members(text), max_n=1, session=None)
    body = body_for(request, upstream_model="m", own=False, max_tokens_cap=None, salt=None)
    assert b'[ {"role":"user","content":"h\\u00e9 1.0e3"} ]' in body
    assert b'"x":1.00' in body


def test_a_limit_named_in_another_dialect_has_the_targets_name() -> None:
    request = replace(asked(max_tokens=5), translated={})
    for name in ("max_tokens", "max_completion_tokens"):
        body = json.loads(
            body_for(
                request, upstream_model="u", own=False, max_tokens_cap=None, salt=None,
                cap_name=name,
            )
        )  # fmt: skip
        assert {key: body[key] for key in body if key.startswith("max")} == {name: 5}
    # What a client of chat called it, it stays.
    told = body_for(
        asked(max_tokens=5), upstream_model="u", own=False, max_tokens_cap=None, salt=None,
        cap_name="max_completion_tokens",
    )  # fmt: skip
    assert json.loads(told)["max_tokens"] == 5
