"""What LiteLLM is told: no cap is lost, and what is left out is named."""

import json
from types import SimpleNamespace

import pytest

from backends.base import Call
from backends.errors import RequestDeclined, RequestUnsendable
from backends.litellm_arguments import AdapterArguments
from backends.openai import Credentials


def made(body: object, supported: list[str] | None, path: str = "/chat/completions", **more):
    call = Call(path, json.dumps(body).encode(), stream=False, **more)
    litellm = SimpleNamespace(
        openai_compatible_providers=[], acompletion="chat", atranscription="sound",
        atext_completion="text",
        get_supported_openai_params=lambda *_: supported,
    )  # fmt: skip
    _, arguments = AdapterArguments("x", Credentials(), None).make(litellm, call)
    return arguments, call.transmission.ignored


@pytest.mark.parametrize(
    ("caps", "supported", "told", "ignored"),
    [
        ({"max_completion_tokens": 5}, ["max_tokens"], {"max_tokens": 5}, ()),
        ({"max_completion_tokens": 5, "max_tokens": 3}, ["max_tokens"], {"max_tokens": 3}, ()),
        ({"max_completion_tokens": 5}, ["max_completion_tokens"], {"max_completion_tokens": 5}, ()),
        ({"max_completion_tokens": 5}, None, {"max_completion_tokens": 5}, ()),
        ({"max_completion_tokens": 5}, [], {"max_tokens": 5}, ("max_completion_tokens",)),
        ({"max_tokens": 5}, ["stop"], {"max_tokens": 5}, ("max_tokens",)),
    ],
)
def test_a_cap_is_told_in_the_word_that_is_known(caps, supported, told, ignored) -> None:
    arguments, left_out = made({"model": "m", "messages": [], **caps}, supported)
    assert {
        name: arguments[name] for name in arguments if "max_" in name and "tokens" in name
    } == told
    assert left_out == ignored


def test_only_what_is_listed_is_told() -> None:
    body = {"model": "m", "messages": [], "api_base": "http://elsewhere", "seed": 1}
    arguments, left_out = made(body, ["temperature"])
    assert arguments["api_base"] is None
    assert left_out == ("api_base", "seed")


def test_a_name_of_the_proxys_is_called_by_its_protocol() -> None:
    call = Call("/chat/completions", b'{"model": "m", "messages": []}', stream=False)
    litellm = SimpleNamespace(
        openai_compatible_providers=[], acompletion="chat",
        get_supported_openai_params=lambda *_: None,
    )  # fmt: skip
    _, arguments = AdapterArguments("a2a_agent", Credentials(), "http://x").make(litellm, call)
    assert arguments["model"] == "a2a/m"


@pytest.mark.parametrize("body", [{}, [], {"messages": []}])
def test_a_request_without_a_model_is_not_sent(body: object) -> None:
    with pytest.raises(RequestUnsendable):
        made(body, None)
    with pytest.raises(RequestUnsendable):
        made({"model": "m"}, None, "/rerank")
    assert issubclass(RequestDeclined, Exception)


@pytest.mark.parametrize(
    ("supported", "role"), [(["tools"], "tool"), (["functions"], "function"), (None, "function")]
)
def test_calls_in_the_first_form_get_ids_where_that_is_unknown(supported, role: str) -> None:
    messages = [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "42"},
    ]
    arguments, left_out = made({"model": "m", "messages": messages}, supported)
    assert arguments["messages"][1]["role"] == role
    assert left_out == ()


def test_functions_in_the_first_form_are_told_where_they_are_known_and_else_refused() -> None:
    """Red before: no model was told of them, and their client only by a header."""
    offered = {"functions": [{"name": "f"}], "function_call": {"name": "f"}}
    body = {"model": "m", "messages": [], **offered}
    for supported in (["tools"], None):
        with pytest.raises(RequestDeclined) as raised:
            made(body, supported)
        error = json.loads(raised.value.body)["error"]
        assert (raised.value.status, error["param"]) == (400, "functions")
        assert "`tools`" in error["message"]
    arguments, left_out = made(body, ["functions", "function_call"])
    assert ({name: arguments[name] for name in offered}, left_out) == (offered, ())
    assert made({**body, "functions": []}, ["tools"])[1] == ("function_call", "functions")


def test_tools_without_schemas_are_refused_where_functions_alone_are_known() -> None:
    """Red before: LiteLLM failed at them, which was told as a server's error, or left them out."""
    function = {"type": "function", "function": {"name": "f"}}
    tools = [function, {"type": "custom", "custom": {"name": "g"}}]
    with pytest.raises(RequestDeclined) as raised:
        made({"model": "m", "messages": [], "tools": tools}, ["tools", "functions"])
    error = json.loads(raised.value.body)["error"]
    assert (raised.value.status, error["param"]) == (400, "tools[1]")
    assert made({"model": "m", "messages": [], "tools": [function]}, ["tools"])[0]["tools"]


def test_an_answers_form_without_a_schema_is_refused_by_name() -> None:
    """Red before: LiteLLM failed at it, which was told as 502 with the advice to retry."""
    body = {"model": "m", "messages": [], "response_format": {"type": "json_schema"}}
    with pytest.raises(RequestDeclined) as raised:
        made(body, ["response_format"])
    error = json.loads(raised.value.body)["error"]
    assert (raised.value.status, error["param"]) == (400, "response_format.json_schema")
    assert made({**body, "prompt": "x"}, None, "/completions")[0]["response_format"]


def test_a_choice_among_some_tools_offers_these_alone() -> None:
    """Red before: LiteLLM knows no such choice, and failed at it."""
    tools = [{"type": "function", "function": {"name": name}} for name in "fg"]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": tools[1:]}}
    body = {"model": "m", "messages": [], "tools": tools, "tool_choice": choice}
    arguments, left_out = made(body, ["tools", "tool_choice"])
    assert (arguments["tools"], arguments["tool_choice"]) == (tools[1:], "required")
    assert left_out == ()
    with pytest.raises(RequestDeclined) as raised:
        made({**body, "tools": tools[:1]}, ["tools", "tool_choice"])
    assert json.loads(raised.value.body)["error"]["param"] == "tool_choice"


def test_calls_that_are_no_objects_are_told_as_one() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{cut"}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    (told,) = made({"model": "m", "messages": messages}, ["tools"])[0]["messages"]
    assert json.loads(told["tool_calls"][0]["function"]["arguments"]) == {
        "invalid_arguments": "{cut"
    }
