"""What may be read as a prompt counts, whatever it is called; what never is does not."""

import json

import pytest

from gateway.http.body import decode_members
from gateway.kinds.prompt_bytes import prompt_bytes, seldom_read_bytes

MESSAGES = [{"role": "user", "content": "hello"}]
TOOL = {"type": "function", "function": {"name": "f", "description": "y" * 500}}


def size(**members) -> int:
    return prompt_bytes(decode_members(json.dumps({"model": "m", **members}).encode()))


@pytest.mark.parametrize(
    "members",
    [
        {"tools": [TOOL]},
        {"functions": [TOOL["function"]]},
        {"documents": [{"text": "y" * 500}]},
        {"response_format": {"type": "json_schema", "json_schema": TOOL["function"]}},
        {"prediction": {"type": "content", "content": "y" * 500}},
        {"suffix": "y" * 500},
        {"a_members_name_of_tomorrow": "y" * 500},
    ],
)
def test_what_may_be_read_counts(members) -> None:
    assert size(messages=MESSAGES, **members) - size(messages=MESSAGES) >= 500


def test_what_is_said_about_the_answer_does_not() -> None:
    about = {"max_tokens": 5, "stop": ["y" * 500], "logit_bias": {"1": 1}, "metadata": {"a": "b"}}
    assert size(messages=MESSAGES, **about) == size(messages=MESSAGES) == len(json.dumps(MESSAGES))


def seldom(**members) -> int:
    return seldom_read_bytes(decode_members(json.dumps({"model": "m", **members}).encode()))


@pytest.mark.parametrize(
    "members",
    [
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [TOOL]}}},
        {"guided_json": {"description": "y" * 500}},
        {"json_schema": {"description": "y" * 500}},
        {"reasoning_effort": "y" * 500},
        {"structured_outputs": {"grammar": "y" * 500}},
    ],
)
def test_long_members_that_few_targets_read_count_in_the_bound_alone(members) -> None:
    assert seldom(**members) >= 500
    assert size(**members) == 0


def test_short_members_and_what_never_stands_in_a_prompt_do_not() -> None:
    assert seldom(tool_choice="auto", temperature=1.0, reasoning_effort="high") == 0
    assert seldom(stop=["y" * 500], logit_bias={"1": 1}, metadata={"a": "b" * 500}) == 0
