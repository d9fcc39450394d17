"""Calls of one answer that a target does not number, or numbers all alike, stay calls."""

import json
from typing import Any

import pytest
from whole_answer import encode_whole

from gateway.request.dialects.messages_encoder import MessagesEncoder
from gateway.request.dialects.responses_encoder import ResponsesEncoder

F, G = '{"x":1}', '{"y":2}'


def call(name: str | None, arguments: str, **members: Any) -> dict[str, Any]:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {**members, "function": function}


def told(stream_of, *deltas: dict[str, Any]) -> list[tuple[str, Any]]:
    """The calls as Anthropic's SDK puts them together."""
    voice, blocks, said = MessagesEncoder("req_1"), dict[int, str](), dict[int, str]()
    stream = stream_of(*({"tool_calls": [delta]} for delta in deltas))
    for line in (voice.feed(stream) + voice.end()).decode().splitlines():
        event = json.loads(line[6:]) if line.startswith("data: ") else {}
        if event.get("type") == "content_block_start":
            blocks[event["index"]] = event["content_block"]["name"]
        elif event.get("type") == "content_block_delta":
            index = event["index"]
            said[index] = said.get(index, "") + event["delta"]["partial_json"]
    return [(name, json.loads(said[index])) for index, name in blocks.items()]


@pytest.mark.parametrize("second", ["f", "g"])
@pytest.mark.parametrize("number", [{"index": 0}, {}])
@pytest.mark.parametrize("ids", [("a", "b"), (None, None)])
def test_the_next_call_under_the_same_number_is_another_one(stream_of, ids, number, second) -> None:
    """Gemini's endpoint for OpenAI's clients: both became one, with arguments nobody can read."""
    first, other = ({} if id_ is None else {"id": id_} for id_ in ids)
    calls = told(stream_of, call("f", F, **number, **first), call(second, G, **number, **other))
    assert calls == [("f", {"x": 1}), (second, {"y": 2})]


def test_parts_of_the_second_go_to_the_second(stream_of) -> None:
    parts = (
        call("f", F, index=0, id="a"), call("g", "", index=0, id="b"),
        call(None, '{"y":', index=0), call(None, "2}", index=0),
    )  # fmt: skip
    assert told(stream_of, *parts) == [("f", {"x": 1}), ("g", {"y": 2})]


@pytest.mark.parametrize("begun", [(), (call("f", F, index=0),)])
@pytest.mark.parametrize("id_", [{}, {"id": "b"}])
@pytest.mark.parametrize(
    "pieces",
    [("get_", "weather"), ("get_weather", "get_weather"), ("get", "get_weather"), ("get_weather",),
     (None, "get_", "weather")],
)  # fmt: skip
def test_a_name_that_comes_in_pieces_is_whole(stream_of, begun, id_, pieces) -> None:
    """Red before: clients were told of a tool that they had not declared."""
    first, *others = pieces
    names = call(first, "", index=0, **id_), *(call(name, "", index=0) for name in others)
    if begun and first is None:
        names = names[1:]
    parts = *begun, *names, call(None, '{"y":', index=0), call(None, "2}", index=0)
    assert told(stream_of, *parts) == [
        *[("f", {"x": 1}) for _ in begun], ("get_weather", {"y": 2})
    ]  # fmt: skip


def test_calls_without_arguments_are_told_in_their_order() -> None:
    voice = MessagesEncoder("req_1")
    deltas = [{"tool_calls": [call(name, "", index=number)]} for number, name in enumerate("fg")]
    deltas.append({"content": "so"})
    for delta in deltas:
        voice.feed(b"data: %b\n\n" % json.dumps({"choices": [{"delta": delta}]}).encode())
    voice.end()
    told = [block.get("name") or block["text"] for block in voice.document()["content"]]
    assert told == ["f", "g", "so"]


@pytest.mark.parametrize("again", [{"id": "a"}, {"id": "z"}, {}])
def test_a_call_that_repeats_what_it_is_stays_one(stream_of, again) -> None:
    """Its id and name with each part, or another id without a name."""
    name = None if again.get("id") == "z" else "f"
    parts = call("f", '{"x"', index=0, id="a"), call(name, ":1}", index=0, **again)
    assert told(stream_of, *parts) == [("f", {"x": 1})]


def test_so_do_calls_of_an_answer_in_one_piece() -> None:
    calls = [call("f", F, index=0, id="a"), call("g", G, index=0, id="b")]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    answer = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    content = json.loads(encode_whole(MessagesEncoder("req_1"), json.dumps(answer).encode()))[
        "content"
    ]
    assert [(item["name"], item["input"]) for item in content] == [("f", {"x": 1}), ("g", {"y": 2})]


@pytest.mark.parametrize("given", [{"x": 1, "n": {"y": [None, "ü"]}}, {}])
def test_arguments_that_are_an_object_are_those_arguments(stream_of, given) -> None:
    """TGI gives them so; the call came without any."""
    function = {"name": "f", "arguments": given}
    assert told(stream_of, {"index": 0, "id": "a", "function": function}) == [("f", given)]


@pytest.mark.parametrize("arguments", ["", None, " "])
def test_a_call_without_arguments_has_an_empty_object_of_them(
    stream_of, answer_of, events, arguments
) -> None:
    """OpenAI's own Responses say `{}`, and clients read what is there as JSON."""
    calls = [{"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}}]
    whole = ResponsesEncoder("req_1", 7, echo={})
    (item,) = json.loads(encode_whole(whole, answer_of({"tool_calls": calls}, "tool_calls")))[
        "output"
    ]
    assert item["arguments"].strip() == "{}"
    voice = ResponsesEncoder("req_1", 7, echo={})
    said = events(voice.feed(stream_of({"tool_calls": calls}, finish="tool_calls")) + voice.end())
    kind = "response.function_call_arguments"
    deltas = [line["delta"] for line in said if line["type"] == f"{kind}.delta"]
    (done,) = [line["arguments"] for line in said if line["type"] == f"{kind}.done"]
    assert "".join(deltas).strip() == done.strip() == "{}"
    assert said[-1]["response"]["output"][0]["arguments"].strip() == "{}"


def test_a_call_that_was_cut_off_before_its_arguments_has_none(answer_of) -> None:
    calls = [{"id": "a", "function": {"name": "f", "arguments": ""}}]
    voice = ResponsesEncoder("req_1", 7, echo={})
    (item,) = json.loads(encode_whole(voice, answer_of({"tool_calls": calls}, "length")))["output"]
    assert (item["arguments"], item["status"]) == ("", "incomplete")
