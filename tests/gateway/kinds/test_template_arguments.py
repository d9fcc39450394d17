"""Arguments of a chat template: plain values pass, and nothing takes the engine's own place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds import KIND_PATHS
from gateway.kinds.inference_request import IncomingBody
from gateway.kinds.template_arguments import TEMPLATE_ARGUMENTS, check_template_arguments
from gateway.request.request_parser import body_for

MESSAGES = [{"role": "user", "content": "hi"}]


def check(value) -> dict:
    members = decode_members(json.dumps({TEMPLATE_ARGUMENTS: value}).encode())
    check_template_arguments(members)
    return members


@pytest.mark.parametrize(
    "value",
    [{}, {"enable_thinking": False}, {"thinking": True, "reasoning_effort": "low", "budget": 5}],
)
def test_plain_values_pass(value) -> None:
    assert json.loads(bytes(check(value)[TEMPLATE_ARGUMENTS])) == value


@pytest.mark.parametrize(
    ("value", "param"),
    [
        ([], TEMPLATE_ARGUMENTS),
        ("x", TEMPLATE_ARGUMENTS),
        ({"a": {"b": 1}}, f"{TEMPLATE_ARGUMENTS}.a"),
        ({"a": [1]}, f"{TEMPLATE_ARGUMENTS}.a"),
        ({"a": "x" * 257}, f"{TEMPLATE_ARGUMENTS}.a"),
        ({"messages": "x"}, f"{TEMPLATE_ARGUMENTS}.messages"),
        ({"chat_template": "x"}, f"{TEMPLATE_ARGUMENTS}.chat_template"),
        ({"tokenize": False}, f"{TEMPLATE_ARGUMENTS}.tokenize"),
        ({"__class__": 1}, TEMPLATE_ARGUMENTS),
        ({"a.b": 1}, TEMPLATE_ARGUMENTS),
        (dict.fromkeys((f"a{i}" for i in range(17)), 1), TEMPLATE_ARGUMENTS),
    ],
)
def test_what_is_no_choice_is_refused_by_its_name(value, param) -> None:
    with pytest.raises(RequestError) as caught:
        check(value)
    assert caught.value.param == param


def test_null_is_nothing() -> None:
    assert check(None) == {}


@given(st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
))  # fmt: skip
def test_whatever_is_sent_is_refused_or_plain(value) -> None:
    try:
        members = check(value)
    except RequestError:
        return
    passed = json.loads(bytes(members.get(TEMPLATE_ARGUMENTS, b"{}")))
    assert all(not isinstance(argument, dict | list) for argument in passed.values())


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/tokenize"])
@pytest.mark.parametrize("own", [True, False])
def test_they_reach_targets_that_take_them_alone(own: bool, path: str) -> None:
    sent = {"model": "m", "messages": MESSAGES, TEMPLATE_ARGUMENTS: {"enable_thinking": False}}
    body = IncomingBody(json.dumps(sent).encode(), "application/json", None, max_n=8)
    asked = KIND_PATHS[path].read(body)
    assert asked.template_arguments
    assert asked.ignored == ()
    if not own:
        asked = asked.without_template_arguments()
    told = json.loads(body_for(asked, upstream_model="u", own=own, max_tokens_cap=None, salt=None))
    assert (TEMPLATE_ARGUMENTS in told) is own


def test_a_count_of_tokens_judges_them_as_a_chat_does() -> None:
    sent = {"model": "m", "messages": MESSAGES, TEMPLATE_ARGUMENTS: {"chat_template": "x"}}
    with pytest.raises(RequestError, match="is set by the engine itself"):
        KIND_PATHS["/tokenize"].read(
            IncomingBody(json.dumps(sent).encode(), "application/json", None, max_n=8)
        )


@pytest.mark.parametrize(
    ("path", "prompt"),
    [(path, name) for path, name in (
        ("/v1/completions", "prompt"), ("/v1/embeddings", "input"), ("/v1/rerank", "query"),
    )],
)  # fmt: skip
def test_other_kinds_have_no_conversation_and_name_them_as_ignored(path, prompt) -> None:
    sent = {"model": "m", prompt: "x", TEMPLATE_ARGUMENTS: {"a": 1}, "rid": "7"}
    sent |= {"documents": ["y"]} if prompt == "query" else {}
    asked = KIND_PATHS[path].read(
        IncomingBody(json.dumps(sent).encode(), "application/json", None, max_n=8)
    )
    assert asked.ignored == (TEMPLATE_ARGUMENTS, "rid")
    assert {TEMPLATE_ARGUMENTS, "rid"}.isdisjoint(asked.members)
