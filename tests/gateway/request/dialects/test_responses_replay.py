"""A stored answer told once more: the events of a stream, from any number on."""

from gateway.request.dialects.responses_replay import replay_events

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
