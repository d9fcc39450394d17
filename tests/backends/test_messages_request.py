"""A request of chat in Messages: each member has a form there, is refused, or is named."""

import json
from typing import Any

import pytest

from backends.messages_request import DEFAULT_MAX_TOKENS, NoMessagesForm, messages_request

ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
TURNS = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
NEW, OLD = "claude-opus-4-6", "claude-3-7-sonnet-20250219"
LOOP = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "found"},
]


def made(**members: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    body, ignored = messages_request(json.dumps({**ASK, **members}).encode())
    return json.loads(body), ignored


def test_a_plain_request_gets_the_limit_that_messages_need() -> None:
    assert made() == ({"model": "m", "max_tokens": DEFAULT_MAX_TOKENS, "messages": TURNS}, ())
    assert made(max_tokens=5)[0]["max_tokens"] == 5
    assert made(max_tokens=5, max_completion_tokens=6)[0]["max_tokens"] == 6


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"stop": "a"}, {"stop_sequences": ["a"]}),
        ({"stop": ["a", "b"]}, {"stop_sequences": ["a", "b"]}),
        ({"temperature": 0.5, "top_p": 0.9, "top_k": 3},
         {"temperature": 0.5, "top_p": 0.9, "top_k": 3}),
        ({"stream": True, "stream_options": {"include_usage": True}}, {"stream": True}),
        ({"n": 1, "store": False, "logprobs": False, "modalities": ["text"], "functions": []}, {}),
        ({"tools": [TOOL]}, {"tools": [{"name": "f", "description": "d", "input_schema": SCHEMA}]}),
        ({"tool_choice": "auto"}, {}),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
         {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}),
        ({"response_format": {"type": "text"}}, {}),
        ({"thinking": {"type": "adaptive"}, "reasoning_effort": "low"},
         {"thinking": {"type": "adaptive"}}),
        ({"context_management": {"edits": []}}, {"context_management": {"edits": []}}),
        ({"web_search_options": {"user_location": {"approximate": {"city": "Ulm"}}}},
         {"tools": [{"type": "web_search_20250305", "name": "web_search",
                     "user_location": {"type": "approximate", "city": "Ulm"}}]}),
        ({"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        ({"service_tier": "default"}, {"service_tier": "standard_only"}),
        ({"service_tier": "standard_only"}, {"service_tier": "standard_only"}),
        ({"service_tier": "auto"}, {"service_tier": "auto"}),
        ({"service_tier": None}, {}),
    ],
)  # fmt: skip
def test_members_have_their_form(members: dict, told: dict) -> None:
    body, ignored = made(**members)
    plain = {"model", "max_tokens", "messages"}
    assert ({name: value for name, value in body.items() if name not in plain}, ignored) == (
        told,
        (),
    )


@pytest.mark.parametrize(
    ("choice", "more", "told"),
    [
        ("auto", {}, {"type": "auto"}),
        ("required", {}, {"type": "any"}),
        ("none", {"parallel_tool_calls": False}, {"type": "none"}),
        ({"type": "function", "function": {"name": "f"}}, {}, {"type": "tool", "name": "f"}),
        (None, {"parallel_tool_calls": False},
         {"type": "auto", "disable_parallel_tool_use": True}),
        (None, {"parallel_tool_calls": True}, None),
    ],
)  # fmt: skip
def test_tools_are_chosen_alike(choice: Any, more: dict, told: dict | None) -> None:
    assert made(tools=[TOOL], tool_choice=choice, **more)[0].get("tool_choice") == told


@pytest.mark.parametrize(
    ("members", "told", "ignored"),
    [
        ({"model": NEW, "reasoning_effort": "low"},
         {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, ()),
        ({"model": OLD, "reasoning_effort": "medium"},
         {"thinking": {"type": "enabled", "budget_tokens": 4096}}, ()),
        ({"model": OLD, "reasoning_effort": "high", "max_tokens": 3000, "temperature": 0.2},
         {"thinking": {"type": "enabled", "budget_tokens": 2999}}, ("temperature",)),
        ({"model": OLD, "reasoning_effort": "high", "max_tokens": 500}, {}, ("reasoning_effort",)),
        ({"model": NEW, "reasoning_effort": "low", "tools": [TOOL], "tool_choice": "required"},
         {}, ("reasoning_effort",)),
        ({"reasoning_effort": "much"}, {}, ("reasoning_effort",)),
        ({"model": OLD, "reasoning_effort": "low", "messages": LOOP}, {}, ("reasoning_effort",)),
        ({"model": NEW, "reasoning_effort": "low", "messages": LOOP},
         {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, ()),
    ],
)  # fmt: skip
def test_effort_becomes_thinking_as_the_model_takes_it(
    members: dict, told: dict, ignored: tuple
) -> None:
    body, left = made(**members)
    names = ("thinking", "output_config", "temperature")
    assert {name: body[name] for name in names if name in body} == told
    assert left == ignored


@pytest.mark.parametrize(
    ("stop", "told", "ignored"),
    [
        ("\n", None, ("stop",)),
        (["\n\n", "END", ""], ["END"], ("stop",)),
        (["\nEND"], ["\nEND"], ()),
        ([], None, ()),
        ([5], [5], ()),
    ],
)
def test_texts_of_blanks_alone_stop_nothing_there(stop, told, ignored: tuple) -> None:
    """Messages refuse the request for one; what is no text is for the target to judge."""
    body, left = made(stop=stop)
    assert (body.get("stop_sequences"), left) == (told, ignored)


def test_what_only_hints_is_named() -> None:
    body, ignored = made(
        seed=1, user="u", temperature=1.7, response_format={"type": "json_object"},
        frequency_penalty=0.1, presence_penalty=0, unheard={}, metadata=None,
    )  # fmt: skip
    assert ignored == (
        "frequency_penalty", "response_format", "seed", "temperature", "user",
    )  # fmt: skip
    assert body["temperature"] == 1
    assert body.keys() == {"model", "max_tokens", "messages", "temperature"}


@pytest.mark.parametrize(
    ("members", "member"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"container": "container_1"}, "container"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0]"),
        ({"tools": [TOOL], "tool_choice": "sometimes"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "allowed_tools"}}, "tool_choice"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
         "messages[0].content[0]"),
    ],
)  # fmt: skip
def test_what_would_change_the_answer_is_refused(members: dict, member: str) -> None:
    with pytest.raises(NoMessagesForm) as refused:
        made(**members)
    assert refused.value.member == member


def test_a_body_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(NoMessagesForm):
        messages_request(b"[]")


def test_a_choice_among_some_tools_offers_these_alone() -> None:
    other = {"type": "function", "function": {"name": "g"}}
    wanted = {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]}
    choice = {"type": "allowed_tools", "allowed_tools": wanted}
    body, ignored = made(tools=[TOOL, other], tool_choice=choice)
    assert [tool["name"] for tool in body["tools"]] == ["f"]
    assert (body["tool_choice"], ignored) == ({"type": "any"}, ())
    with pytest.raises(NoMessagesForm, match="tool_choice"):
        made(tools=[other], tool_choice=choice)


def test_members_of_messages_without_a_form_are_named() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://a/b.png", "detail": "low"}}
    said = {"role": "assistant", "content": "a", "reasoning_content": "b", "annotations": []}
    asked = {
        "role": "user",
        "name": "ann",
        "content": [image, {"type": "text", "text": "q", "x": 1}],
    }
    _, ignored = made(messages=[asked, said])
    assert ignored == (
        "messages.image_url.detail", "messages.name", "messages.reasoning_content",
        "messages.text.x",
    )  # fmt: skip


def test_members_of_tools_without_a_form_are_named() -> None:
    tool = {**TOOL, "x": 1, "function": {**TOOL["function"], "y": [1], "strict": False}}
    body, ignored = made(tools=[{**tool, "z": None}])
    assert ("x" in body["tools"][0], ignored) == (False, ("tools.x", "tools.y"))


def test_instructions_alone_are_what_the_user_says() -> None:
    """OpenAI's models answer them; Messages need a turn of the user."""
    alone = [{"role": "system", "content": "a"}, {"role": "developer", "content": "b"}]
    body, ignored = made(messages=alone)
    told = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert (body["messages"], "system" in body) == ([{"role": "user", "content": told}], False)
    assert ignored == ()
    spoken, _ = made(messages=[*alone, {"role": "user", "content": " "}])
    assert spoken["messages"] == body["messages"]
    for blank in ("", None, [], [{"type": "text", "text": " "}]):
        with pytest.raises(NoMessagesForm, match="`messages`: at least one message must have text"):
            made(messages=[{"role": "user", "content": blank}])


@pytest.mark.parametrize("tier", ["flex", "priority", ["auto"]])
def test_a_tier_that_messages_cannot_ask_for_is_named(tier: object) -> None:
    body, ignored = made(service_tier=tier)
    assert ("service_tier" in body, ignored) == (False, ("service_tier",))
