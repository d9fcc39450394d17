"""A stored answer told once more: the events of a stream, from any number on."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.request.dialects.responses_encoder import ResponsesEncoder
from gateway.request.dialects.responses_replay import replay_events
from gateway.request.dialects.responses_tools import CalledTool

ITEMS = [
    {"id": "rs_1", "type": "reasoning", "status": "completed", "summary": [],
     "content": [{"type": "reasoning_text", "text": "hm"}]},
    {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [
        {"type": "output_text", "text": "yes", "annotations": [], "logprobs": []},
        {"type": "refusal", "refusal": "no"},
    ]},
    {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "c",
     "name": "look", "arguments": "{}"},
    {"id": "ctc_1", "type": "custom_tool_call", "call_id": "d", "name": "patch", "input": "x"},
    {"id": "x_1", "type": "of_tomorrow"},
]  # fmt: skip
RESPONSE = {
    "id": "resp_1", "status": "completed", "output": ITEMS, "usage": {"total_tokens": 3},
    "completed_at": 5, "error": None, "incomplete_details": None,
}  # fmt: skip


def told(events, starting_after: int | None = None) -> list[dict]:
    return events(b"".join(replay_events(RESPONSE, starting_after)))


def test_every_item_grows_from_nothing_to_what_it_is(events) -> None:
    found = told(events)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    assert found[0]["response"]["output"] == []
    assert found[0]["response"]["status"] == "in_progress"
    assert found[-1] == {
        "type": "response.completed", "sequence_number": len(found) - 1, "response": RESPONSE
    }  # fmt: skip
    done = [event["item"] for event in found if event["type"] == "response.output_item.done"]
    assert done == ITEMS
    deltas = [
        (event["type"], event["delta"]) for event in found if event["type"].endswith(".delta")
    ]
    assert deltas == [
        ("response.reasoning_text.delta", "hm"),
        ("response.output_text.delta", "yes"),
        ("response.refusal.delta", "no"),
        ("response.function_call_arguments.delta", "{}"),
        ("response.custom_tool_call_input.delta", "x"),
    ]
    added = [event["item"] for event in found if event["type"] == "response.output_item.added"]
    assert [item.get("content", item.get("arguments", item.get("input"))) for item in added] == [
        [], [], "", "", None
    ]  # fmt: skip


def test_a_client_goes_on_behind_what_it_has(events) -> None:
    found = told(events)
    for number in (0, 7, len(found) - 1):
        assert told(events, number) == found[number + 1 :]


def test_a_client_with_more_than_is_known_gets_the_end(events) -> None:
    """Red before: nothing came, as from an answer that never ends. It may have been cancelled."""
    last = told(events)[-1]
    assert told(events, 10**12) == [{**last, "sequence_number": 10**12 + 1}]


def encoder_of(name: str) -> ResponsesEncoder:
    tools = {"patch": CalledTool(kind="custom", name="patch")}
    encoder = ResponsesEncoder(name, 7, echo={}, tools=tools)
    encoder.note_events()
    return encoder


def shapes(found: list[dict]) -> list[dict]:
    """What tells one event from another; the first two hold the answer as it was just then."""
    return [{**each, "response": None} for each in found]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_was_streamed_is_told_in_the_pieces_that_it_had(
    events, stream_of, answers, data
) -> None:
    """Red before: numbers meant other events, so who went on had gaps, or nothing at all."""
    encoder = encoder_of("req_1")
    stream = encoder.feed(stream_of(*data.draw(answers))) + encoder.end_blocks()
    document = encoder.document()
    noted = [*encoder.noted_events]
    live = events(stream + encoder.end_stream())
    assert noted == encoder.noted_events[: len(noted)]
    after = data.draw(st.integers(0, len(live) - 1))
    again = events(b"".join(replay_events(document, after, noted)))
    assert shapes(again) == shapes(live[after + 1 :])


def call(name: str, *parts: str) -> list[dict]:
    head = {"index": 0, "id": "c", "function": {"name": name, "arguments": ""}}
    return [
        {"tool_calls": [head]},
        *({"tool_calls": [{"index": 0, "function": {"arguments": part}}]} for part in parts),
    ]


PICTURE = "data:image/png;base64,aGk="


@pytest.mark.parametrize(
    "deltas",
    [
        call("patch", '{"input": "*** Be', 'gin"}'),
        call("patch", '{"input": ""}'),
        call("look"),
        [{"content": "a"}, {"images": [{"image_url": {"url": PICTURE}}]}, {"content": "b"}],
        [{"refusal": "n"}, {"refusal": "o"}],
    ],
)
def test_every_kind_of_item_has_the_numbers_that_it_had(events, stream_of, deltas) -> None:
    encoder = encoder_of("req_1")
    stream = encoder.feed(stream_of(*deltas)) + encoder.end_blocks()
    document, noted = encoder.document(), [*encoder.noted_events]
    live = events(stream + encoder.end_stream())
    for after in range(len(live)):
        again = events(b"".join(replay_events(document, after, noted)))
        assert shapes(again) == shapes(live[after + 1 :])


def test_a_stream_that_broke_has_the_numbers_that_it_had(events) -> None:
    encoder = encoder_of("req_1")
    stream = encoder.feed(b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n')
    stream += encoder.feed(b'data: {"error":{"message":"broken","code":"server_error"}}\n\n')
    document, noted = encoder.failed_document(), [*encoder.noted_events]
    live = events(stream + encoder.end())
    again = events(b"".join(replay_events(document or {}, 1, noted)))
    assert shapes(again) == shapes(live[2:])
    assert [event["type"] for event in again[-2:]] == ["error", "response.failed"]


def test_what_a_text_cites_is_told_behind_it(events) -> None:
    cited = {"type": "url_citation", "url": "http://a", "title": "A"}
    likely = [{"token": "yes", "bytes": [], "logprob": -1, "top_logprobs": []}]
    part = {"type": "output_text", "text": "yes", "annotations": [cited], "logprobs": likely}
    response = {**RESPONSE, "output": [{**ITEMS[1], "content": [part]}]}
    found = events(b"".join(replay_events(response, None)))
    kinds = [event["type"].removeprefix("response.") for event in found]
    assert kinds[3:7] == [
        "content_part.added", "output_text.delta", "output_text.annotation.added",
        "output_text.done",
    ]  # fmt: skip
    assert (found[3]["part"]["annotations"], found[5]["annotation"]) == ([], cited)
    assert [found[number].get("logprobs") for number in (4, 6)] == [likely, likely]
    assert found[3]["part"]["logprobs"] == []
