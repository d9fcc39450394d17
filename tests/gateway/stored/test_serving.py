"""The store beside the books: they never depend on it, and a switch leaves it out."""

import json
import sqlite3

import pytest

from gateway.request.store import object_store
from gateway.stored import serving

RESPONSES = "/v1/responses"
ASK = {"model": "own", "input": "hello there", "max_output_tokens": 12}


@pytest.fixture
def away(monkeypatch):
    """The store's database is gone, as with a full disk."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("store_objects", "find_object", "find_chain", "find_objects", "list_objects"):
        monkeypatch.setattr(object_store.rows, name, fail)


def test_an_answer_that_cannot_be_stored_is_served_and_booked(stack, away) -> None:
    whole = stack.post(RESPONSES, ASK)
    assert whole.status_code == 200
    assert whole.json()["store"] is False
    assert whole.headers["x-breakeven-not-stored"] == "unavailable"
    assert stack.settled(whole)[0]["output_tokens"] == 12
    streamed = stack.post(RESPONSES, {**ASK, "stream": True})
    events = [
        json.loads(part.partition("\ndata: ")[2]) for part in streamed.text.split("\n\n")[:-1]
    ]
    assert events[0]["response"]["store"] is True
    assert events[-1]["response"]["store"] is False
    assert stack.settled(streamed)[0]["output_tokens"] == 12
    chat = stack.chat("own", store=True, max_tokens=3)
    assert chat.headers["x-breakeven-not-stored"] == "unavailable"
    assert len(stack.settled(chat)) == 1


def test_a_turn_that_cannot_be_read_is_tried_again_later(stack, away) -> None:
    before = stack.booked()
    for asked in (
        {"previous_response_id": "resp_1"}, {"conversation": "conv_1"},
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
    ):  # fmt: skip
        refused = stack.post(RESPONSES, {**ASK, **asked})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert stack.get(f"{RESPONSES}/resp_1").status_code == 503
    assert stack.post("/v1/conversations", {}).status_code == 503
    assert stack.booked() == before
    assert stack.get("/readyz").status_code == 200


def test_what_keeps_nothing_needs_no_store(stack, away) -> None:
    assert stack.post(RESPONSES, {**ASK, "store": False}).status_code == 200
    assert stack.chat("own", max_tokens=3).status_code == 200


def test_the_switch_refuses_the_first_turn(run_stack) -> None:
    with run_stack(store={"enabled": False}) as stack:
        for asked in ({}, {"store": True}, {"store": False, "previous_response_id": "resp_1"}):
            refused = stack.post(RESPONSES, {**ASK, **asked})
            assert refused.status_code == 400
            assert "`store: false`" in refused.json()["error"]["message"]
        answer = stack.post(RESPONSES, {**ASK, "store": False})
        assert answer.json()["store"] is False
        assert stack.get(f"{RESPONSES}/{answer.json()['id']}").status_code == 404
        begun = stack.post("/v1/conversations", {})
        assert (begun.status_code, begun.json()["error"]["code"]) == (404, "endpoint_not_served")
        assert begun.headers["x-should-retry"] == "false"
        assert stack.post(f"{RESPONSES}/compact", ASK).status_code == 400
        counted = stack.post(f"{RESPONSES}/input_tokens", ASK)
        assert counted.json()["input_tokens"] > 0
        assert not (stack.state / object_store.FILE).exists()


def test_what_expired_is_deleted(run_stack, patiently, monkeypatch) -> None:
    monkeypatch.setattr(serving, "FORGET_S", 0.05)
    with run_stack(store={"days": 0.00002}) as stack:  # 1.7 s
        answer = stack.post(RESPONSES, ASK).json()
        path = f"{RESPONSES}/{answer['id']}"
        assert stack.get(path).status_code == 200
        patiently(lambda: stack.get(path).status_code == 404)
        turn = stack.post(RESPONSES, {**ASK, "previous_response_id": answer["id"]})
        assert turn.status_code == 404
        data = stack.state / object_store.FILE

        def count() -> int:
            with sqlite3.connect(data) as connection:
                return connection.execute("SELECT count(*) FROM stored_objects").fetchone()[0]

        patiently(lambda: count() == 0)


def test_a_long_conversation_is_compacted_and_goes_on(stack) -> None:
    first = stack.post(RESPONSES, ASK).json()
    compacted = stack.post(
        f"{RESPONSES}/compact", {"model": "own", "previous_response_id": first["id"]}
    )
    assert compacted.status_code == 200, compacted.text
    document = compacted.json()
    assert document["object"] == "response.compaction"
    assert document["output"][-1]["type"] == "compaction"
    assert stack.settled(compacted)[0]["output_tokens"] == document["usage"]["output_tokens"]
    turn = {**ASK, "input": [*document["output"], {"role": "user", "content": "on"}]}
    assert stack.post(RESPONSES, turn).status_code == 200
    further = {"model": "own", "input": turn["input"], "tools": [], "store": True}
    again = stack.post(f"{RESPONSES}/compact", further)
    assert again.headers["x-breakeven-ignored"] == "store"
    words = [item["content"][0]["text"] for item in again.json()["output"][:-1]]
    assert words == ["hello there", "on"]
    other = stack.key("stranger", team="others").token
    alone = {**turn, "input": document["output"]}
    assert stack.post(RESPONSES, alone, other).status_code == 400
    unread = stack.post(RESPONSES, turn, other)  # one line stands for what it cannot read
    assert unread.headers["x-breakeven-ignored"] == "input.compaction"
