"""A conversation as a request for its summary, and the summary as a compaction."""

import json

import pytest
from whole_answer import encode_whole

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.request.dialects.compaction import (
    COMPACT,
    INSTRUCTION,
    KEPT_BYTES,
    PREFACE,
    SUMMARY_MARK,
    joined,
    last_user_messages,
)
from router.types import Feature


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def test_the_model_is_asked_for_a_summary_and_nothing_else() -> None:
    asked = {
        "model": "m", "stream": True, "instructions": "Be brief.",
        "tools": [{"type": "function", "name": "look"}], "tool_choice": "required",
        "input": [user("hi"), {"role": "assistant", "content": "ho"}],
    }  # fmt: skip
    heard = COMPACT.decode_request(decode_members(json.dumps(asked).encode()))
    assert heard.members.keys() == {"model", "messages"}
    messages = json.loads(bytes(heard.members["messages"]))
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[-1]["content"] == INSTRUCTION


@pytest.mark.parametrize(
    ("member", "value", "param"),
    [
        ("tools", [{"type": "function", "name": "f", "parameters": [None]}], "tools"),
        ("stream", "yes", "stream"),
        ("text", {"format": 5}, "text"),
    ],
)
def test_what_a_summary_does_without_is_read_as_of_any_answer(member, value, param: str) -> None:
    asked = {"model": "m", "input": "hi", member: value}
    with pytest.raises(RequestError) as refused:
        COMPACT.decode_request(decode_members(json.dumps(asked).encode()))
    assert refused.value.param.startswith(param)


def test_the_answer_has_the_users_words_and_one_compaction(answer_of) -> None:
    asked = {"model": "m", "input": [user("hi"), {"role": "assistant", "content": "ho"}]}
    heard = COMPACT.decode_request(decode_members(json.dumps(asked).encode()))
    body = answer_of({"content": "They met.", "reasoning_content": "hm"})
    document = json.loads(encode_whole(heard.voice("req_ab", 7), body))
    assert (document["id"], document["object"], document["created_at"]) == (
        "resp_ab", "response.compaction", 7
    )  # fmt: skip
    words, item = document["output"]
    assert words["content"] == [{"type": "input_text", "text": "hi"}]
    assert item == {"id": "cmp_ab_0", "type": "compaction", "encrypted_content": "They met."}
    assert document["usage"]["output_tokens"] == 12


def heard_of(**asked):
    return COMPACT.decode_request(decode_members(json.dumps({"model": "m", **asked}).encode()))


def test_what_no_summary_has_a_use_for_is_named() -> None:
    asked = {
        "tools": [{"type": "function", "name": "look"}], "tool_choice": "required", "stream": True,
        "text": {"format": {"type": "json_object"}}, "metadata": {"a": "b"}, "store": True,
        "top_logprobs": 2, "max_tool_calls": 3, "background": False, "include": [],
    }  # fmt: skip
    heard = heard_of(input="hi", **asked)
    named = {"max_tool_calls", "metadata", "store", "stream", "text", "tool_choice", "tools"}
    assert set(heard.ignored) == {*named, "top_logprobs"}
    assert heard.features == {}
    assert heard_of(input="hi", store=False).ignored == ()


def test_media_and_length_are_judged_as_those_of_any_answer() -> None:
    """A session that an answer goes on from can be summed up where that is answered."""
    picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    earlier = {"role": "user", "content": [picture, {"type": "input_text", "text": "x" * 900}]}
    turns = [earlier, {"role": "assistant", "content": "ho"}, user("on")]
    heard = heard_of(input=turns, truncation="auto")
    assert b"image_url" in bytes(heard.members["messages"])
    assert b"image_url" not in bytes(heard.instead.members["messages"])
    assert heard.instead.ignored == ("input.image",)
    less = heard.shorten(600)
    assert less.ignored == ("input.oldest",)
    for asked in (heard, heard.instead, less):
        assert json.loads(bytes(asked.members["messages"]))[-1]["content"].endswith(INSTRUCTION)
        made = json.loads(encode_whole(asked.voice("req_ab", 7), b"{}"))
        assert made["object"] == "response.compaction"
    file = {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0="}
    asked = heard_of(input=[{"role": "user", "content": [file]}])
    assert asked.features.keys() == {Feature.FILES}


def test_an_earlier_summary_is_in_the_new_one_alone() -> None:
    before = {"role": "user", "content": [{"type": "input_text", "text": f"{PREFACE}They met."}]}
    marked = {**before, **SUMMARY_MARK}
    assert last_user_messages([user("hi"), marked]) == last_user_messages([user("hi")])
    kept = last_user_messages([user("hi"), before])
    assert kept[1]["content"] == before["content"], "a user may write as a summary begins"


@pytest.mark.parametrize("given", [None, 5, [], ["x"], [{"role": "assistant", "content": "x"}]])
def test_no_words_of_the_user(given) -> None:
    assert last_user_messages(given) == []


def test_the_last_words_stay_as_many_as_may() -> None:
    assert [m["content"][0]["text"] for m in last_user_messages("hi")] == ["hi"]
    long = "x" * (KEPT_BYTES // 3)
    many = [user(f"{number}{long}") for number in range(4)]
    kept = last_user_messages(many)
    assert [message["content"][0]["text"][0] for message in kept] == ["2", "3"]


def test_neighbours_of_the_user_are_joined() -> None:
    asked = user("sum up")
    assert joined([user("a"), asked]) == [user("a\n\nsum up")]
    parts = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    assert joined([parts, asked]) == [parts, asked]
    answer = {"role": "assistant", "content": "a"}
    assert joined([user("x"), answer, asked]) == [user("x"), answer, asked]
