"""A form that LiteLLM fails at is the client's mistake, and is named."""

import json

import pytest

from backends.litellm_shapes import find_misshapen

FUNCTION = {"type": "function", "function": {"name": "f"}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}


@pytest.mark.parametrize(
    ("body", "member"),
    [
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
         "response_format.json_schema.schema"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": True}}},
         "response_format.json_schema.schema"),
        ({"tools": ["f"]}, "tools[0]"),
        ({"tools": [FUNCTION, {"type": "function", "name": "g"}]}, "tools[1].function"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": None}]}]},
         "messages[0].content[0].text"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
         "messages[0].content[0].image_url"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
         "messages[0].content[0].image_url"),
    ],
)  # fmt: skip
def test_what_it_fails_at_is_named(body: dict, member: str) -> None:
    fault = find_misshapen(body)
    assert fault is not None
    assert fault.member == member


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"response_format": None, "tools": None, "messages": None},
        {"response_format": {"type": "text"}},
        {"response_format": {"type": "json_object"}},
        {"response_format": SCHEMA, "tools": [FUNCTION]},
        {"tools": [{"name": "f", "input_schema": {}}, {"type": "computer_20250124"}]},
        {"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": "data:,"}, {"type": "thinking"},
            {"type": "image_url", "image_url": {"url": "https://a/b.png"}}]}]},
        {"messages": [{"role": "assistant", "content": None}, {"role": "user", "content": "x"},
                      {"role": "user", "content": [{"type": "text", "text": "x"}]}]},
    ],
)  # fmt: skip
def test_what_it_translates_has_no_fault(body: dict) -> None:
    assert find_misshapen(json.loads(json.dumps(body))) is None
