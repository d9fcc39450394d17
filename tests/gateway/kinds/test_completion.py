"""Completions: lists of prompts, and the limit that they have without one."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds.completion import DEFAULT_MAX_TOKENS, SPEC, read_completion
from gateway.kinds.inference_request import InferenceRequest
from router.request_kinds import RequestKind


def asked(**members: Any) -> InferenceRequest:
    text = json.dumps({"model": "m", **members}).encode()
    return read_completion(decode_members(text), max_n=4, session=None)


def test_every_prompt_has_its_choices() -> None:
    request = asked(prompt=["a", "b"], n=2)
    assert (request.kind, request.path) == (RequestKind.COMPLETION, "/completions")
    assert (request.prompts, request.n) == (2, 2)
    with pytest.raises(RequestError, match="ask for 6 answers; one request may ask for 4"):
        asked(prompt=["a", "b", "c"], n=2)


def test_the_limit_is_openais_where_none_is_named() -> None:
    assert asked(prompt="a").max_tokens == DEFAULT_MAX_TOKENS == 16
    assert asked(prompt="a", max_tokens=5).max_tokens == 5


def test_a_prompt_may_be_scored_without_an_answer() -> None:
    """Red before: OpenAI and vLLM take `max_tokens: 0` beside `echo`, as evaluations send it."""
    request = asked(prompt="a", max_tokens=0, echo=True, logprobs=1)
    assert request.max_tokens == 1, "an engine generates a token all the same"
    assert bytes(request.members["max_tokens"]) == b"0"
    for echo in ({}, {"echo": False}, {"echo": None}):
        with pytest.raises(RequestError, match="or 0 with `echo: true`") as caught:
            asked(prompt="a", max_tokens=0, **echo)
        assert caught.value.param == "max_tokens"
    with pytest.raises(RequestError) as caught:
        asked(prompt="a", max_tokens=-1, echo=True)
    assert caught.value.param == "max_tokens"
    schema = SPEC.paths["/v1/completions"].described.body(4)
    is_valid = Draft202012Validator(schema).is_valid
    assert is_valid({"model": "m", "prompt": "a", "max_tokens": 0, "echo": True})
    assert not is_valid({"model": "m", "prompt": "a", "max_tokens": 0})


def test_a_prompt_is_required() -> None:
    for prompt in (None, []):
        with pytest.raises(RequestError) as caught:
            asked(prompt=prompt)
        assert caught.value.param == "prompt"


def test_a_list_of_prompts_is_no_longer_than_the_most_choices() -> None:
    body = SPEC.paths["/v1/completions"].described.body(4)
    lists = [shape for shape in body["properties"]["prompt"]["anyOf"] if "maxItems" in shape]
    assert [shape["maxItems"] for shape in lists] == [4, 4]
