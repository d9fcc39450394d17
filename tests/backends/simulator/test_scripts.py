"""What an answer will be, before time begins."""

import json

import pytest

from backends.simulator.scripts import instance, make_script

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
            "required": ["city"],
        },
    },
}


def test_words_end_naturally_or_at_the_limit():
    free = make_script({}, 12345, 10_000, chat=True)
    assert free.finish_reason == "stop"
    assert make_script({}, 12345, free.tokens - 1, chat=True).finish_reason == "length"
    assert make_script({"ignore_eos": True}, 12345, 700, chat=True).tokens == 700
    assert make_script({"min_tokens": 900}, 12345, 10_000, chat=True).tokens == 900


def test_a_stop_string_is_not_part_of_the_text():
    script = make_script({"stop": "]", "ignore_eos": True}, 1, 100, chat=True)
    assert (script.text, script.finish_reason, script.stop_reason) == ("[simulated", "stop", "]")
    assert script.tokens == 3


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        ("required", "tool_calls"),
        ({"type": "function", "function": {"name": "get_weather"}}, "stop"),
    ],
)
def test_a_forced_tool_call_has_arguments_of_its_schema(choice, reason):
    script = make_script({"tools": [WEATHER], "tool_choice": choice}, 1, 100, chat=True)
    assert script.tool == "get_weather"
    assert json.loads(script.text) == {"city": "Paris"}
    assert script.finish_reason == reason


def test_an_unforced_tool_is_not_called():
    assert make_script({"tools": [WEATHER], "tool_choice": "auto"}, 1, 100, chat=True).tool is None


def test_json_is_asked_for_and_cut_by_the_limit():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "array"}}}
    wanted = {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
    assert json.loads(make_script(wanted, 1, 100, chat=True).text) == {"a": 0, "b": []}
    assert make_script(wanted, 1, 2, chat=True).finish_reason == "length"
    assert make_script({"response_format": {"type": "json_object"}}, 1, 9, chat=True).text == "{}"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"const": 3}, 3),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, False),
        ({"type": ["string", "null"]}, "simulated"),
        ({"type": "array", "items": {"type": "number", "minimum": 2}, "minItems": 1}, [2]),
        ({"type": "null"}, None),
        ("nonsense", None),
    ],
)
def test_instances_of_schemas(schema, value):
    assert instance(schema) == value


def test_a_schema_without_end_ends():
    loop = {"type": "object", "properties": {}}
    loop["properties"]["again"] = loop
    assert instance(loop)
