"""Schemas that bodies share, as a validator reads them."""

import jsonschema
import pytest

from gateway.kinds.openapi_schemas import (
    OPTIONS_NEED_STREAM,
    TEXT,
    answer_schema,
    body_schema,
    form_schema,
    generation_members,
    list_schema,
    null_members,
    prompt_schema,
)


def holds(schema: dict, value: object) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


@pytest.mark.parametrize(
    ("prompt", "taken"),
    [
        ("a", True), ("", False), (["a", "b"], True), (["a", "b", "c"], False), ([], False),
        ([1, 2, 3], True), ([[1], [2]], True), ([[1], []], False), ([-1], False), (None, False),
    ],
)  # fmt: skip
def test_a_prompt_is_a_text_or_tokens_or_a_short_list(prompt: object, taken: bool) -> None:
    assert holds(prompt_schema(2), prompt) is taken


def test_options_of_a_stream_need_one() -> None:
    schema = {**body_schema("prompt", generation_members(3)), **OPTIONS_NEED_STREAM}
    body = {"model": "m", "prompt": "a", "stream_options": {"include_usage": True}}
    assert not holds(schema, body)
    assert holds(schema, {**body, "stream": True})
    assert holds(schema, {"model": "m", "prompt": "a", "stream_options": {}})
    assert not holds(schema, {"model": "m", "prompt": "a", "n": 4})


def test_names_that_do_not_apply_are_null() -> None:
    schema = body_schema("input", {"input": TEXT, **null_members("n")}, "model")
    assert holds(schema, {"model": "m", "input": "a", "n": None, "other": 1})
    assert not holds(schema, {"model": "m", "input": "a", "n": 1})


def test_a_form_has_texts_alone() -> None:
    assert holds(form_schema({"model": TEXT}), {"model": "m", "file": "x", "prompt": "a"})
    assert not holds(form_schema({"model": TEXT}), {"model": "m", "file": "x", "prompt": 1})


def test_lists_and_answers_name_the_least() -> None:
    assert not holds(list_schema(TEXT), [])
    assert holds(list_schema(TEXT), ["a"] * 9)
    assert not holds(answer_schema("id"), {"object": "x"})
