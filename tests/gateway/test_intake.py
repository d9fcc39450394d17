"""What a client asked for: bounds before dispatch, features, and the body a target gets."""

import json
from typing import Any

import pytest

from gateway.body import open_members
from gateway.errors import RequestError
from gateway.intake import Asked, body_for, read
from router.types import Feature, Kind

MESSAGES = [{"role": "user", "content": "hello"}]


def asked(path: str = "/v1/chat/completions", **members: Any) -> Asked:
    if path == "/v1/chat/completions":
        members.setdefault("messages", MESSAGES)
    text = json.dumps({"model": "m", **members}).encode()
    return read(path, open_members(text), max_n=8, session=None)


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"model": None}, "model"),
        ({"model": 3}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"n": 0}, "n"),
        ({"n": 10**9}, "n"),
        ({"n": "2"}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 10**30}, "max_tokens"),
        ({"max_completion_tokens": 2**64}, "max_completion_tokens"),
        ({"max_completion_tokens": -1}, "max_completion_tokens"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": "yes"}, "stream"),
    ],
)
def test_bad_members_are_named(members: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        asked(**members)
    assert caught.value.row.status == 400
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("members", "feature"),
    [
        ({"tools": [{"type": "function"}]}, Feature.TOOLS),
        ({"response_format": {"type": "json_schema"}}, Feature.JSON_SCHEMA),
        ({"response_format": {"type": "json_object"}}, Feature.JSON_SCHEMA),
        ({"logprobs": True}, Feature.LOGPROBS),
        ({"n": 2}, Feature.N),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            Feature.IMAGES,
        ),
    ],
)
def test_features_are_seen(members: dict[str, Any], feature: Feature) -> None:
    assert asked(**members).features == {feature}


def test_words_in_a_text_are_no_features() -> None:
    quoted = [{"role": "user", "content": 'say "image_url" and "tools"'}]
    assert asked(messages=quoted, tools=[], response_format={"type": "text"}).features == set()


def test_kinds_have_their_own_defaults() -> None:
    assert asked().max_tokens is None
    completion = asked("/v1/completions", prompt="once")
    assert (completion.kind, completion.max_tokens, completion.prompts) == (Kind.COMPLETION, 16, 1)
    assert asked("/v1/completions", prompt=["a", "b"]).prompts == 2
    assert asked("/v1/completions", prompt=[1, 2, 3]).prompts == 1
    assert asked("/v1/embeddings", input="x").max_tokens == 0


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


def test_an_api_is_asked_for_final_usage_only() -> None:
    request = asked(stream=True, stream_options={"continuous_usage_stats": True, "x": 1})
    body = json.loads(body_for(request, upstream_model="u", own=False, max_tokens_cap=7, salt=None))
    assert body["stream_options"] == {"x": 1, "include_usage": True}
    assert body["max_tokens"] == 7
    assert "cache_salt" not in body


def test_the_clients_bytes_are_not_touched_otherwise() -> None:
    text = b'{"model":"m","messages":[ {"role":"user","content":"h\\u00e9 1.0e3"} ],"x":1.00}'
    request = read("/v1/chat/completions", open_members(text), max_n=1, session=None)
    body = body_for(request, upstream_model="m", own=False, max_tokens_cap=None, salt=None)
    assert b'[ {"role":"user","content":"h\\u00e9 1.0e3"} ]' in body
    assert b'"x":1.00' in body
