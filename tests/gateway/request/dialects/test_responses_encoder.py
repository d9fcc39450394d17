"""Events and documents of the Responses API: every item in its steps, and the whole at the end."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.request.dialects.responses_encoder import ResponsesEncoder, usage
from ledger.journals.records import TokenCounts

USED = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 0},
    "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 42,
}
CALLS = [
    {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}},
    {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}},
]


def voice() -> ResponsesEncoder:
    return ResponsesEncoder("req_1", 7, echo={"user": "u"})


def streamed(events, stream: bytes) -> list[dict]:
    told = voice()
    return events(told.feed(stream) + told.end())


def test_the_last_event_holds_the_whole_answer(events, stream_of, answer_of) -> None:
    message = {"reasoning": "hm", "content": "so", "tool_calls": CALLS}
    whole = json.loads(voice().encode_whole(answer_of(message, "tool_calls")))
    told = streamed(
        events, stream_of({"reasoning": "hm"}, {"content": "so"}, {"tool_calls": CALLS})
    )
    assert told[-1] == {
        "type": "response.completed",
        "sequence_number": len(told) - 1,
        "response": whole,
    }
    assert (whole["id"], whole["object"], whole["status"]) == ("resp_1", "response", "completed")
    assert (whole["model"], whole["user"], whole["created_at"]) == ("m1", "u", 7)
    assert whole["usage"] == USED
    text = {"type": "output_text", "text": "so", "annotations": [], "logprobs": []}
    assert whole["output"] == [
        {
            "id": "rs_1_0",
            "status": "completed",
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "hm"}],
        },
        {
            "id": "msg_1_1",
            "status": "completed",
            "type": "message",
            "role": "assistant",
            "content": [text],
        },
        {
            "id": "fc_1_2",
            "status": "completed",
            "type": "function_call",
            "call_id": "a",
            "name": "f",
            "arguments": '{"x":1}',
        },
        {
            "id": "fc_1_3",
            "status": "completed",
            "type": "function_call",
            "call_id": "b",
            "name": "g",
            "arguments": "{}",
        },
    ]


def test_the_steps_of_a_text(events, stream_of) -> None:
    told = streamed(events, stream_of({"content": "a"}, {"content": "b"}))
    assert [event["type"].removeprefix("response.") for event in told] == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta",
        "output_text.delta", "output_text.done", "content_part.done", "output_item.done",
        "completed",
    ]  # fmt: skip
    assert told[0]["response"]["status"] == "in_progress"
    assert told[0]["response"]["usage"] is None
    assert (told[6]["text"], told[7]["part"]["text"]) == ("ab", "ab")
    assert told[8]["item"]["content"][0]["text"] == "ab"


def test_the_steps_of_a_call(events, stream_of) -> None:
    told = streamed(events, stream_of({"tool_calls": CALLS[:1]}))[2:-1]
    assert [event["type"].removeprefix("response.") for event in told] == [
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.done",
        "output_item.done",
    ]  # fmt: skip
    assert told[0]["item"]["arguments"] == ""
    assert (told[2]["arguments"], told[2]["name"]) == ('{"x":1}', "f")


def test_the_steps_of_a_refusal(events, stream_of) -> None:
    told = streamed(events, stream_of({"refusal": "no"}))
    kinds = [event["type"] for event in told]
    assert kinds[4:6] == ["response.refusal.delta", "response.refusal.done"]
    assert told[5]["refusal"] == "no"
    assert told[-1]["response"]["output"][0]["content"] == [{"type": "refusal", "refusal": "no"}]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_is_said_the_deltas_come_to_the_items(events, stream_of, answers, data) -> None:
    deltas = data.draw(answers)
    told = streamed(events, stream_of(*deltas))
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    said: dict[int, str] = {}
    for event in told:
        if event["type"].endswith(".delta"):
            index = event["output_index"]
            said[index] = said.get(index, "") + event["delta"]
    response = told[-1]["response"]
    for index, item in enumerate(response["output"]):
        whole = item["arguments"] if "arguments" in item else item["content"][0]["text"]
        assert whole == said.get(index, "")
    done = [e["output_index"] for e in told if e["type"] == "response.output_item.done"]
    assert sorted(done) == list(range(len(response["output"])))
    assert all(
        event["item"] == response["output"][event["output_index"]]
        for event in told
        if event["type"] == "response.output_item.done"
    )


@pytest.mark.parametrize(
    ("finish", "status", "cause"),
    [
        ("stop", "completed", None),
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}),
    ],
)
def test_endings(events, stream_of, answer_of, finish: str, status: str, cause: object) -> None:
    whole = json.loads(voice().encode_whole(answer_of({"reasoning": "a", "content": "x"}, finish)))
    assert (whole["status"], whole["incomplete_details"]) == (status, cause)
    assert [item["status"] for item in whole["output"]] == ["completed", status]
    told = streamed(events, stream_of({"reasoning": "a"}, {"content": "x"}, finish=finish))
    assert (told[-1]["type"], told[-1]["response"]) == (f"response.{status}", whole)


def test_a_stream_that_breaks_says_so_and_ends(events) -> None:
    told = voice()
    first = events(told.feed(b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'))
    error = b'data: {"error":{"message":"broken","code":"upstream_error"}}\n\n'
    last = events(told.feed(error) + told.end())
    assert [event["type"] for event in last] == ["error", "response.failed"]
    assert (last[0]["message"], last[0]["code"]) == ("broken", "upstream_error")
    assert last[1]["response"]["status"] == "failed"
    assert last[1]["response"]["error"] == {"code": "server_error", "message": "broken"}
    assert last[0]["sequence_number"] == len(first)


def test_every_token_is_counted_once() -> None:
    tokens = TokenCounts(
        input=1, cached=2, cache_write=4, cache_write_1h=8, output=16, audio_input=32
    )
    assert usage(tokens)["input_tokens"] == 47
    assert usage(tokens)["total_tokens"] == 63
