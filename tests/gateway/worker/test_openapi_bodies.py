"""The bodies' schemas: what is accepted and refused by them is by the gateway (see tests/sdk)."""

import json

import pytest
from jsonschema import Draft202012Validator

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.request.dialects.messages import MESSAGES
from gateway.request.dialects.messages_blocks import _FORMS
from gateway.request.dialects.responses import RESPONSES
from gateway.request.inference_api import HOT
from gateway.worker.openapi_bodies import ASSISTANT_BLOCKS, INFERENCE_PATHS, RESULT_BLOCKS


def test_every_hot_path_has_one() -> None:
    assert INFERENCE_PATHS.keys() == HOT
    bodies = [described.body(8) for described in INFERENCE_PATHS.values()]
    assert all("model" in body["properties"] for body in bodies)
    unnamed = [body for body in bodies if "model" not in body["required"]]
    assert len(unnamed) == 1  # a moderation may leave it to the default


def test_bounds_are_those_of_the_configuration() -> None:
    found = INFERENCE_PATHS["/v1/completions"].body(3)["properties"]
    assert found["n"]["maximum"] == 3
    lists = [item for item in found["prompt"]["anyOf"] if "maxItems" in item]
    assert [list_["maxItems"] for list_ in lists] == [3, 3]


def is_refused(kind: str, *, result: bool) -> bool:
    block = {"type": kind}
    inner = [{"type": "tool_result", "tool_use_id": "x", "content": [block]}]
    turns = (
        [{"role": "user", "content": inner}]
        if result
        else [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [block]},
              {"role": "user", "content": "go on"}]
    )  # fmt: skip
    body = {"model": "m", "max_tokens": 5, "messages": turns}
    try:
        MESSAGES.decode_request(decode_members(json.dumps(body).encode()))
    except RequestError:
        return True
    return False


@pytest.mark.parametrize(("checked", "result"), [(RESULT_BLOCKS, True), (ASSISTANT_BLOCKS, False)])
def test_blocks_with_members_that_are_checked_are_named(checked, result: bool) -> None:
    kinds = [*_FORMS, "tool_use", "of_tomorrow"]
    assert {kind for kind in kinds if is_refused(kind, result=result)} == set(checked)


PARTS = [
    {"type": kind, **members}
    for kind in ("output_text", "text", "refusal", "refusals", "input_image", "reasoning_text", "")
    for members in ({}, {"text": "said"}, {"refusal": "no"}, {"text": 5})
]


@pytest.mark.parametrize("part", [*PARTS, {"text": "said"}], ids=json.dumps)
def test_parts_of_an_answer_are_taken_as_the_document_says(part: dict) -> None:
    """So that what a client may send, and what is told instead of it, is written down."""
    item = {"role": "assistant", "content": [part]}
    body = {"model": "m", "input": [{"role": "user", "content": "hi"}, item]}
    try:
        RESPONSES.decode_request(decode_members(json.dumps(body).encode()))
    except RequestError:
        is_taken = False
    else:
        is_taken = True
    described = INFERENCE_PATHS["/v1/responses"].body(8)["properties"]["input"]
    assert Draft202012Validator(described).is_valid(body["input"]) is is_taken
