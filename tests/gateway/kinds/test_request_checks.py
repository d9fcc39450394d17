"""Few bytes that are work at every token are refused with their limit; what is usual is not."""

import json

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds import request_checks
from gateway.kinds.chat import read_chat
from gateway.kinds.request_checks import REFUSED, check, refuse_nested


def asked(**members) -> None:
    check(decode_members(json.dumps(members).encode()))


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"stop": ["x"] * 65}, "65 texts; one request may have 64"),
        ({"stop": "x" * 1025}, "1024 characters"),
        ({"stop": ["x", "x" * 1025]}, "1024 characters"),
        ({"stop": 5}, "must be a string"),
        ({"stop": False}, "must be a string"),
        ({"stop": [1]}, r"`stop\[0\]` must be a string, not a whole number\."),
        ({"stop_token_ids": [1] * 1025}, "1025 entries; one request may have 1024"),
        ({"allowed_token_ids": [1] * 1025}, "may have 1024"),
        ({"logit_bias": {str(index): 1 for index in range(1025)}}, "may have 1024"),
        ({"logit_bias": [[index, 1] for index in range(1025)]}, "may have 1024"),
        ({"logit_bias": "all"}, "must be a list"),
        ({"bad_words": ["x"] * 129}, "may have 128"),
        ({"logprob_token_ids": [1] * 129}, "may have 128"),
        ({"token_ids_logprob": [1] * 129}, "may have 128"),
        ({"repetition_detection": {"max_pattern_size": 129}}, "patterns of 128 tokens"),
        ({"repetition_detection": {"max_pattern_size": "9"}}, "patterns of 128 tokens"),
        ({"repetition_detection": [5]}, "must be an object"),
    ],
)
def test_too_much_is_refused_with_its_limit(members, words) -> None:
    with pytest.raises(RequestError, match=words) as refused:
        asked(**members)
    assert (refused.value.row.status, refused.value.param) == (400, next(iter(members)))


@pytest.mark.parametrize("name", sorted(REFUSED))
@pytest.mark.parametrize("value", [True, 2, "x", ["x"], {"a": 1}, -1])
def test_what_leaves_the_terms_is_refused_by_name(name, value) -> None:
    with pytest.raises(RequestError, match=f"`{name}` is not taken") as refused:
        asked(**{name: value})
    assert (refused.value.row.status, refused.value.param) == (400, name)


@pytest.mark.parametrize(
    "members",
    [
        {"stop": ["x"] * 64, "stop_token_ids": [1] * 1024, "bad_words": ["x"] * 128},
        {"stop": "x" * 1024, "logit_bias": {str(index): 1 for index in range(1024)}},
        {"stop": None, "logit_bias": None, "repetition_detection": None},
        {"stop": []},
        {"repetition_detection": {"max_pattern_size": 20, "min_count": 3}},
        dict.fromkeys(REFUSED),
        dict.fromkeys(REFUSED, False),
        {"speed": "standard", "inference_geo": "global", "serviceTier": "default"},
        {"performanceConfig": {"latency": "standard"}},
        {"num_return_sequences": 1, "candidate_count": 1, "num_beams": 1},
        {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
        {"context_management": {"edits": []}},
        {"context_management": None},
    ],
)
def test_what_is_usual_is_not(members) -> None:
    asked(**members)


@pytest.mark.parametrize(
    "members",
    [
        {"speed": "fast"}, {"speed": ["standard"]}, {"inference_geo": "us"}, {"num_beams": 2},
        {"performanceConfig": {"latency": "optimized"}}, {"serviceTier": {"a": ["default"]}},
        {"context_management": {"edits": [{"type": "compact_20260112"}]}},
        {"context_management": [{"type": "compaction", "compact_threshold": 9}]},
        {"context_management": {"edits": [], "compaction": True}},
        {"context_management": {"edits": "compact"}},
    ],
)  # fmt: skip
def test_what_is_dearer_is_refused(members) -> None:
    with pytest.raises(RequestError):
        asked(**members)


def test_without_the_look_all_of_it_would_go_on(monkeypatch) -> None:
    """The negative control."""
    monkeypatch.setattr(request_checks, "_LOOKED_AT", frozenset())
    asked(stop=["x"] * 10_000, use_beam_search=True, bad_words=["x"] * 10_000)


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "max_tokens": {"n": 5}, "modalities": {}},
}


def test_a_name_that_is_there_twice_inside_is_refused() -> None:
    text = b'{"acme": {"properties": {"n": 8}, "properties": {}}}'
    with pytest.raises(RequestError):
        refuse_nested(decode_members(text))


@pytest.mark.parametrize(
    "members",
    [
        {"options": {"num_predict": 9_999}},
        {"parameters": {"max_new_tokens": 9_999}},
        {"parameters": {"decoding": [{"num_return_sequences": 8}]}},
        {"config": {"maxOutputTokens": 9_999}},
        {"config": {"responseModalities": ["AUDIO"]}},
        {"additionalModelRequestFields": {"max_tokens": 9_999}},
        {"google": {"candidateCount": 8}},
        {"acme": [{"n": 8}]},
        {"acme": {"properties": {"a": 5}, "max_tokens": 8}},
        {"acme": {"properties": 5, "n": "1"}},
    ],
)
def test_a_limit_inside_a_vendors_member_is_refused(members) -> None:
    text = json.dumps(members)
    name = next(iter(members))
    for written in (text, text.replace("ax_", "\\u0061x_").replace('"n"', '"\\u006E"')):
        with pytest.raises(RequestError, match="`max_tokens`, `n` or `modalities`") as refused:
            refuse_nested(decode_members(written.encode()))
        assert refused.value.param == name


@pytest.mark.parametrize(
    "members",
    [
        {"google": {"thinking_config": {"thinking_budget": 5}}},
        {"metadata": {"n": "5", "max_tokens": "9"}},
        {"options": {"n": None}},
        {"acme": '{"n": 8}'},
        {"prediction": {"type": "content", "content": "n"}},
        {"response_format": {"type": "json_schema", "json_schema": {"properties": {"n": {}}}}},
        {"tools": [{"type": "function", "function": {"parameters": {"n": {}}}}]},
        {"guided_decoding": {"json": SCHEMA}},
        {"text": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        {"output_format": {"schema": {"$defs": {"n": SCHEMA, "max_tokens": SCHEMA}}}},
        {"extra_body": {"guided_json": {"type": "array", "items": SCHEMA}}},
        {"options": {"n": 1, "num_return_sequences": 1, "modalities": ["text"]}},
    ],
)
def test_what_holds_no_limit_is_not(members) -> None:
    refuse_nested(decode_members(json.dumps(members).encode()))


def marked(ttl, place: str) -> bytes:
    mark = {"type": "ephemeral"} | ({} if ttl is None else {"ttl": ttl})
    part = {"type": "text", "text": "a", "cache_control": mark}
    body = {"model": "m", "messages": [{"role": "user", "content": [part]}]}
    if place != "messages":
        body["messages"] = [{"role": "user", "content": "a"}]
        tool = {"type": "function", "function": {"name": "f"}, "cache_control": mark}
        body |= {"tools": [tool]} if place == "tools" else {"cache_control": mark}
    return json.dumps(body).encode()


@pytest.mark.parametrize("place", ["messages", "tools", "cache_control"])
@pytest.mark.parametrize("ttl", ["100000h", "360000000s", "2h", 3600, "", ["1h"]])
def test_a_cache_that_is_kept_for_long_is_refused_by_name(place, ttl) -> None:
    text = marked(ttl, place)
    for body in (text, text.replace(b'"ttl"', b'"\\u0074tl"')):
        with pytest.raises(RequestError, match="may be `5m` or `1h`") as caught:
            read_chat(decode_members(body), max_n=1, session=None)
        assert (caught.value.row.status, caught.value.param) == (400, place)


@pytest.mark.parametrize("place", ["messages", "tools", "cache_control"])
@pytest.mark.parametrize("ttl", [None, "5m", "1h"])
def test_the_times_that_providers_list_pass(place, ttl) -> None:
    read_chat(decode_members(marked(ttl, place)), max_n=1, session=None)


def test_a_ttl_of_something_else_is_none_of_a_cache() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"ttl": 9}}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    read_chat(decode_members(body), max_n=1, session=None)
