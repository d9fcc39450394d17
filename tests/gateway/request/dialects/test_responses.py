"""A request of the Responses API as a chat request: renamed, left out, passed on and refused."""

import json

import pytest
from whole_answer import encode_whole

from gateway.errors import RequestError, body
from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.request.dialects.responses import RESPONSES
from router.types import Feature

ASK = {"model": "m", "input": "hi"}
HEARD = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOL = {"type": "function", "name": "look", "parameters": SCHEMA, "strict": True}
FUNCTION = {"name": "look", "parameters": SCHEMA, "strict": True}


def members(**asked: object):
    return decode_members(json.dumps({**ASK, **asked}).encode())


def heard(**asked: object) -> dict:
    found = RESPONSES.decode_request(members(**asked))
    read_chat(found.members, max_n=8, session=None)  # chat takes it
    return {name: json.loads(bytes(value)) for name, value in found.members.items()}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, {}),
        ({"max_output_tokens": 9}, {"max_tokens": 9}),
        ({"temperature": 0.5, "user": "u"}, {"temperature": 0.5, "user": "u"}),
        ({"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}),
        ({"stream_options": {"include_obfuscation": False}}, {}),
        ({"store": True, "background": True, "previous_response_id": "resp_1"}, {}),
        ({"conversation": {"id": "conv_1"}}, {}),
        ({"metadata": {"a": "b"}, "include": ["reasoning.encrypted_content"]}, {}),
        ({"truncation": "disabled"}, {}),
        ({"tools": [TOOL]}, {"tools": [{"type": "function", "function": FUNCTION}]}),
        (
            {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False},
            {
                "tools": [{"type": "function", "function": FUNCTION}],
                "tool_choice": "required",
                "parallel_tool_calls": False,
            },
        ),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "name": "look"}},
            {
                "tools": [{"type": "function", "function": FUNCTION}],
                "tool_choice": {"type": "function", "function": {"name": "look"}},
            },
        ),
        ({"tools": [], "tool_choice": "auto"}, {}),
        ({"text": {"format": {"type": "text"}}}, {}),
        (
            {"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
            {"response_format": {"type": "json_object"}, "verbosity": "low"},
        ),
        (
            {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": SCHEMA},
                }
            },
        ),
        (
            {"reasoning": {"effort": "low", "summary": "auto"}},
            {"reasoning_effort": "low"},
        ),
        ({"top_logprobs": 0}, {}),
        ({"top_logprobs": None, "include": None}, {}),
        ({"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"include": ["message.output_text.logprobs"]}, {"logprobs": True}),
    ],
)
def test_members(asked: dict, expected: dict) -> None:
    assert heard(**asked) == {**HEARD, **expected}


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"truncation": "sometimes"}, "truncation"),
        ({"top_logprobs": "2"}, "top_logprobs"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"top_logprobs": -1}, "top_logprobs"),
        ({"n": 2}, "n"),
        ({"messages": [{}]}, "messages"),
        ({"max_tokens": 5}, "max_tokens"),
        ({"tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [TOOL], "tool_choice": {"type": "mcp"}}, "tool_choice"),
        ({"text": {"format": {"type": "yaml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "name": "a"}}}, "text.format.schema"),
        ({"reasoning": {"effort": 5}}, "reasoning.effort"),
        ({"instructions": ["x"]}, "instructions"),
        ({"input": None}, "input"),
        ({"metadata": "x"}, "metadata"),
        ({"metadata": {"a": 1}}, "metadata"),
        ({"metadata": {"a": "x" * 513}}, "metadata"),
    ],
)
def test_refused(asked: dict, place: str) -> None:
    with pytest.raises(RequestError) as caught:
        heard(**asked)
    assert caught.value.row.status == 400
    assert caught.value.param == place


def test_an_answer_repeats_what_was_asked() -> None:
    asked = {
        "max_output_tokens": 5, "metadata": {"a": "b"}, "temperature": 0.5, "presence_penalty": 1,
        "store": True, "previous_response_id": "resp_1", "conversation": {"id": "c"},
        "background": True, "top_p": 0.5, "frequency_penalty": 0.5,
    }  # fmt: skip
    found = RESPONSES.decode_request(members(**asked, prompt_cache_key="k"))
    assert found.session == "k"
    answer = json.loads(encode_whole(found.voice("req_1", 7), b"{}"))
    assert {name: answer[name] for name in asked} == asked
    assert (answer["created_at"], answer["tool_choice"]) == (7, "auto")


def test_an_answer_has_every_member_that_the_schema_requires() -> None:
    """What was asked, else OpenAI's default."""
    bare = {"type": "function", "name": "bare"}
    shape = {"type": "json_schema", "name": "a", "schema": SCHEMA}
    found = RESPONSES.decode_request(
        members(
            tools=[TOOL, bare], text={"format": shape}, reasoning={"effort": "low"},
            service_tier="auto", temperature=None,
        )
    )  # fmt: skip
    encoder = found.voice("req_1", 7)
    encoder.elapsed_s = 3
    answer = json.loads(encode_whole(encoder, b"{}"))
    nothing = {"description": None, "parameters": None, "strict": False}
    assert answer["tools"] == [{"description": None, **TOOL}, {**nothing, **bare}]
    assert answer["text"] == {"format": {"description": None, "strict": False, **shape}}
    assert answer["reasoning"] == {"effort": "low", "summary": None}
    expected = {
        "temperature": 1.0, "top_p": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0,
        "service_tier": "default", "store": False, "background": False, "completed_at": 10,
        "previous_response_id": None, "conversation": None, "truncation": "disabled",
        "parallel_tool_calls": True, "top_logprobs": 0, "max_tool_calls": None,
        "max_output_tokens": None, "instructions": None, "metadata": {}, "error": None,
        "incomplete_details": None, "prompt_cache_key": None, "safety_identifier": None,
    }  # fmt: skip
    assert {name: answer.get(name, "missing") for name in expected} == expected
    flex = RESPONSES.decode_request(members(service_tier="flex"))
    assert json.loads(encode_whole(flex.voice("r", 1), b"{}"))["service_tier"] == "flex"
    tiered = encode_whole(flex.voice("r", 1), b'{"service_tier":"default"}')
    assert json.loads(tiered)["service_tier"] == "default"


@pytest.mark.parametrize(
    ("param", "told"),
    [
        ("messages", "input"),
        ("messages[3].content", "input"),
        ("max_completion_tokens", "max_output_tokens"),
        ("response_format", "text.format"),
        ("tools[0].name", "tools[0].name"),
        (None, None),
    ],
)
def test_errors_keep_their_shape_and_name_what_was_sent(param: str | None, told: str) -> None:
    error = RequestError("unsupported", f"Leave `{param}` out.", param=param)
    document = json.loads(RESPONSES.translate_error(body(error), 400, "req_1"))["error"]
    assert set(document) == {"message", "type", "param", "code"}
    assert (document["param"], document["code"]) == (told, "unsupported_parameter")
    if param in ("messages", "response_format"):
        assert document["message"] == f"Leave `{told}` out."


def test_a_place_in_chats_messages_is_named_as_the_input() -> None:
    """Instructions and joined turns are in chat's numbers: they would name another item."""
    told = "`messages[0].content[0]`: a file must be a PDF. Leave `messages` alone."
    error = {"message": told, "type": "t", "param": "messages[0].content[0]", "code": None}
    text = json.dumps({"error": error}).encode()
    document = json.loads(RESPONSES.translate_error(text, 400, "req_1"))["error"]
    assert document["message"] == "`input`: a file must be a PDF. Leave `input` alone."
    assert document["param"] == "input"


def test_no_header_is_missing() -> None:
    assert list(RESPONSES.headers("req_1")) == []
    assert RESPONSES.purpose == "answer"


SPACE = {"type": "namespace", "name": "crew", "description": "Helpers", "tools": [TOOL]}


def test_functions_of_a_namespace_have_it_in_their_name() -> None:
    told = heard(tools=[SPACE, TOOL])["tools"]
    assert [line["function"]["name"] for line in told] == ["crew__look", "look"]
    call = {"type": "function_call", "call_id": "c", "arguments": "{}", "name": "look"}
    output = {"type": "function_call_output", "call_id": "c", "output": "seen"}
    turns = heard(input=[{"role": "user", "content": "hi"}, {**call, "namespace": "crew"}, output])
    assert turns["messages"][1]["tool_calls"][0]["function"]["name"] == "crew__look"


def test_their_calls_are_told_with_it() -> None:
    voice = RESPONSES.decode_request(members(tools=[SPACE, TOOL])).voice("req_1", 0)
    calls = [
        {"id": str(place), "type": "function", "function": {"name": name, "arguments": "{}"}}
        for place, name in enumerate(("crew__look", "look"))
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    answer = json.loads(
        encode_whole(voice, json.dumps({"model": "m", "choices": [choice]}).encode())
    )
    first, second = answer["output"]
    assert (first["name"], first["namespace"]) == ("look", "crew")
    assert (second["name"], "namespace" in second) == ("look", False)


def test_a_search_beside_functions_is_left_out() -> None:
    told = heard(tools=[TOOL, {"type": "web_search"}])["tools"]
    assert [line["function"]["name"] for line in told] == ["look"]
    with pytest.raises(RequestError, match=r"tools\[1\]"):
        heard(tools=[TOOL, {"type": "file_search"}])


@pytest.mark.parametrize("tools", [{}, "", [{"type": "namespace", "name": "a"}], [1]])
def test_tools_are_a_list_of_objects(tools: object) -> None:
    with pytest.raises(RequestError, match="tools"):
        heard(tools=tools)


def test_of_what_is_to_be_included_only_the_rest_is_named() -> None:
    likely, other = "message.output_text.logprobs", "file_search_call.results"
    for include, named in (
        ([likely], ()),
        ([likely, other], ("include",)),
        ([other], ("include",)),
    ):
        found = RESPONSES.decode_request(members(include=include))
        assert found.ignored == named
        assert found.features == ({Feature.LOGPROBS: "include"} if likely in include else {})
    asked = RESPONSES.decode_request(members(top_logprobs=1))
    assert asked.features == {Feature.LOGPROBS: "top_logprobs"}
