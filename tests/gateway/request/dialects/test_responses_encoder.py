"""Events and documents of the Responses API: every item in its steps, and the whole at the end."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from whole_answer import encode_whole

from gateway.request.dialects.responses_encoder import ResponsesEncoder, usage
from gateway.request.dialects.responses_tools import CalledTool
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


def likely(token: str) -> dict:
    """One token as chat tells it; that of Responses is the same but for what may be left out."""
    other = {"token": "x", "logprob": -2, "bytes": None}
    top = [{"token": token, "logprob": -0.5}, other]
    return {"token": token, "bytes": list(token.encode()), "logprob": -0.5, "top_logprobs": top}


def told_likely(*tokens: str) -> list[dict]:
    top = [{"bytes": [], "logprob": -2, "token": "x"}]
    return [
        {**likely(token), "top_logprobs": [{"token": token, "bytes": [], "logprob": -0.5}, *top]}
        for token in tokens
    ]


def streamed(events, stream: bytes) -> list[dict]:
    told = voice()
    return events(told.feed(stream) + told.end())


def test_the_last_event_holds_the_whole_answer(events, stream_of, answer_of) -> None:
    message = {"reasoning": "hm", "content": "so", "tool_calls": CALLS}
    whole = json.loads(encode_whole(voice(), answer_of(message, "tool_calls")))
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


def test_what_a_text_cites_is_told_with_it(events, stream_of, answer_of) -> None:
    """Providers that search the web name their sources beside the text, often behind it."""
    cited = {"url": "http://a", "title": "A", "start_index": 0, "end_index": 2, "content": "..."}
    broken = [{"type": "url_citation"}, {"type": "url_citation", "url_citation": {"url": 5}}, 7]
    annotations = [{"type": "url_citation", "url_citation": cited}, *broken]
    told = streamed(events, stream_of({"content": "ab"}, {"annotations": annotations}))
    kinds = [event["type"].removeprefix("response.") for event in told]
    place = kinds.index("output_text.annotation.added")
    assert kinds[place - 1 : place + 2] == [
        "output_text.delta", "output_text.annotation.added", "output_text.done"
    ]  # fmt: skip
    annotation = {
        "type": "url_citation", "url": "http://a", "title": "A", "start_index": 0, "end_index": 2
    }  # fmt: skip
    assert (told[place]["annotation"], told[place]["annotation_index"]) == (annotation, 0)
    assert told[3]["part"]["annotations"] == []
    whole = json.loads(
        encode_whole(voice(), answer_of({"content": "ab", "annotations": annotations}))
    )
    assert whole["output"] == told[-1]["response"]["output"]
    assert whole["output"][0]["content"][0]["annotations"] == [annotation]


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
    whole = json.loads(encode_whole(voice(), answer_of({"reasoning": "a", "content": "x"}, finish)))
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


TOOLS = {
    "crew__patch": CalledTool("custom", "patch", "crew"),
    "shell": CalledTool("shell", "shell"),
    "plain": CalledTool("function", "plain"),
}


def call(name: str, *parts: str, index: int = 0) -> list[dict]:
    head = {"index": index, "id": f"c{index}", "function": {"name": name, "arguments": ""}}
    return [
        {"tool_calls": [head]},
        *({"tool_calls": [{"index": index, "function": {"arguments": part}}]} for part in parts),
    ]


def with_tools() -> ResponsesEncoder:
    return ResponsesEncoder("req_1", 7, echo={}, tools=TOOLS)


@pytest.mark.parametrize(
    ("parts", "deltas", "told"),
    [
        (['{"input": "*** Be', "gin\\n", 'x"}'], ["*** Be", "gin\n", "x"], "*** Begin\nx"),
        (["*** Begin", "\nx"], ["*** Begin", "\nx"], "*** Begin\nx"),  # without its object
        (['{"why": 1, "input": "x"}'], ["x"], "x"),
        (['{"input": 5}'], ['{"input": 5}'], '{"input": 5}'),
        (['{"input": ""}'], [], ""),
    ],
)
def test_a_call_of_a_custom_tool_is_plain_text(events, stream_of, parts, deltas, told) -> None:
    encoder = with_tools()
    stream = stream_of(*call("crew__patch", *parts), finish="tool_calls")
    found = events(encoder.feed(stream) + encoder.end())
    kinds = [event["type"] for event in found]
    assert "response.function_call_arguments.delta" not in kinds
    growing = "response.custom_tool_call_input"
    assert [event["delta"] for event in found if event["type"] == f"{growing}.delta"] == deltas
    (done,) = [event for event in found if event["type"] == f"{growing}.done"]
    assert done["input"] == told
    item = found[-1]["response"]["output"][0]
    assert item == {
        "id": "ctc_1_0", "status": "completed", "type": "custom_tool_call", "call_id": "c0",
        "name": "patch", "namespace": "crew", "input": told,
    }  # fmt: skip
    assert done["item_id"] == item["id"]


def test_a_call_of_a_tool_that_the_client_runs_is_an_item_of_its_own(events, stream_of) -> None:
    encoder = with_tools()
    stream = stream_of(*call("shell", '{"commands":', '["ls"]}'), finish="tool_calls")
    found = events(encoder.feed(stream) + encoder.end())
    assert [event["type"] for event in found][2:-1] == [
        "response.output_item.added", "response.output_item.done"
    ]  # fmt: skip
    assert found[-1]["response"]["output"] == [found[-2]["item"]]
    action = {"commands": ["ls"], "timeout_ms": None, "max_output_length": None}
    assert found[-2]["item"] == {
        "id": "sh_1_0", "status": "completed", "type": "shell_call", "call_id": "c0",
        "action": action,
    }  # fmt: skip


def test_whole_answers_tell_the_same(events, stream_of, answer_of) -> None:
    parts = [*call("crew__patch", '{"input": "x"}'), *call("plain", "{}", index=1)]
    encoder = with_tools()
    streamed_output = events(encoder.feed(stream_of(*parts)) + encoder.end())[-1]["response"]
    calls = [
        {"id": "c0", "function": {"name": "crew__patch", "arguments": '{"input": "x"}'}},
        {"id": "c1", "function": {"name": "plain", "arguments": "{}"}},
    ]
    whole = json.loads(encode_whole(with_tools(), answer_of({"tool_calls": calls}, "tool_calls")))
    assert whole["output"] == streamed_output["output"]
    assert [item["type"] for item in whole["output"]] == ["custom_tool_call", "function_call"]


def test_an_answer_that_is_not_stored_says_so_at_its_end(events, stream_of) -> None:
    encoder = ResponsesEncoder("req_1", 7, echo={"store": True})
    data = encoder.feed(stream_of({"content": "x"})) + encoder.end_blocks()
    assert encoder.document()["store"] is True
    encoder.mark_unstored()
    found = events(data + encoder.end_stream())
    assert [found[0]["response"]["store"], found[-1]["response"]["store"]] == [True, False]
    queued = encoder.state_document("queued")
    assert (queued["status"], queued["output"], queued["id"]) == ("queued", [], "resp_1")
    assert encoder.state_document("failed", "why")["error"]["message"] == "why"


@pytest.mark.parametrize("thought", [None, "hmm"])
def test_log_probabilities_stand_beside_the_text_that_they_are_of(events, thought) -> None:
    """Engines that tell them of thoughts, too, tell those first."""
    thoughts = [likely("hm"), likely("m")] if thought else []
    spoken = [likely("so"), likely(" ü")]
    choice = {"index": 0, "message": {"reasoning": thought, "content": "so ü"},
              "finish_reason": "stop", "logprobs": {"content": thoughts + spoken}}  # fmt: skip
    whole = json.loads(encode_whole(voice(), json.dumps({"choices": [choice]}).encode()))
    assert whole["output"][-1]["content"][0]["logprobs"] == told_likely("so", " ü")

    def chunk(delta: dict, *tokens: dict) -> bytes:
        told = {"index": 0, "delta": delta, "logprobs": {"content": list(tokens)}}
        return b"data: " + json.dumps({"choices": [told]}).encode() + b"\n\n"

    parts = [chunk({"reasoning": thought}, *thoughts)] if thought else []
    parts += [chunk({"content": "so"}, spoken[0]), chunk({"content": " ü"}, spoken[1])]
    found = streamed(events, b"".join(parts))
    by_type = {event["type"]: event for event in found}
    deltas = [event["logprobs"] for event in found if event["type"].endswith("text.delta")
              and "reasoning" not in event["type"]]  # fmt: skip
    assert deltas == [told_likely("so"), told_likely(" ü")]
    assert by_type["response.output_text.done"]["logprobs"] == told_likely("so", " ü")
    part = by_type["response.content_part.done"]["part"]
    assert part["logprobs"] == told_likely("so", " ü")
    assert found[-1]["response"]["output"][-1]["content"] == [part]


@pytest.mark.parametrize("odd", [None, 5, {}, {"content": 5}, {"content": [5, {"token": 5}, {}]}])
def test_log_probabilities_that_are_none_are_not_told(odd) -> None:
    choice = {"index": 0, "message": {"content": "a"}, "finish_reason": "stop", "logprobs": odd}
    whole = json.loads(encode_whole(voice(), json.dumps({"choices": [choice]}).encode()))
    assert whole["output"][0]["content"][0]["logprobs"] == []


def test_a_picture_is_what_the_tool_for_pictures_comes_to(events, stream_of, answer_of) -> None:
    images = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        for data in ("aGk=", "aG8=")
    ]
    items = [
        {
            "id": f"ig_1_{place}",
            "type": "image_generation_call",
            "status": "completed",
            "result": data,
        }
        for place, data in ((1, "aGk="), (2, "aG8="))
    ]
    message = {"content": "so", "images": images}
    whole = json.loads(encode_whole(voice(), answer_of(message, "length")))
    assert whole["output"][1:] == items
    told = streamed(events, stream_of({"content": "so"}, {"images": images}))
    assert told[-1]["response"]["output"][1:] == items
    of_first = [event for event in told if event.get("item_id") == "ig_1_1"]
    assert [event["type"] for event in of_first] == ["response.image_generation_call.completed"]
    added, done = (event["item"] for event in told if event.get("item", {}).get("id") == "ig_1_1")
    assert (added["status"], added["result"]) == ("in_progress", None)
    assert done == items[0]


def test_a_picture_that_lies_elsewhere_and_sound_are_text(answer_of) -> None:
    message = {
        "audio": {"transcript": "see"},
        "images": [{"image_url": {"url": "https://a/b.png"}}],
    }
    output = json.loads(encode_whole(voice(), answer_of(message)))["output"]
    texts = [part["text"] for item in output for part in item["content"]]
    assert texts == ["see\n![picture](https://a/b.png)\n"]


@pytest.mark.parametrize("said", [{}, {"content": "So far"}, {"refusal": "No."}])
def test_why_a_provider_refuses_is_told_where_the_model_says_nothing(events, said: dict) -> None:
    """Red before: clients saw an empty answer, and no word of the reason."""
    details = {"type": "refusal", "category": "bio", "explanation": "It may harm."}
    choice = {"index": 0, "finish_reason": "content_filter", "stop_details": details}
    whole = json.loads(
        encode_whole(voice(), json.dumps({"choices": [{**choice, "message": said}]}).encode())
    )
    last = whole["output"][-1]
    assert (whole["status"], last["status"]) == ("incomplete", "incomplete")
    words = said.get("refusal", "It may harm.")
    assert last["content"] == [{"type": "refusal", "refusal": words}]
    assert len(whole["output"]) == 1 + ("content" in said)
    chunk = b"data: " + json.dumps({"choices": [{**choice, "delta": said}]}).encode() + b"\n\n"
    told = streamed(events, chunk)
    assert [event["delta"] for event in told if event["type"] == "response.refusal.delta"] == [
        words
    ]
    assert told[-1]["response"]["output"] == whole["output"]
