"""Stored answers over real sockets: found, continued, referred to, deleted, and nobody else's."""

import json
import sqlite3

import httpx
import pytest
from sqlalchemy import text

from gateway.request.store import object_store
from ledger.database import make_engine

ASK = {"model": "own", "input": "hello there", "max_output_tokens": 12}
RESPONSES = "/v1/responses"
SECRET = "the password of the house is marzipan"


def answered(answer: httpx.Response) -> dict:
    assert answer.status_code == 200, answer.text
    return answer.json()


def ask(stack, token: str | None = None, **members) -> dict:
    return answered(stack.post(RESPONSES, {**ASK, **members}, token))


def error_of(answer: httpx.Response) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


def events_of(answer: httpx.Response) -> list[dict]:
    parts = answer.text.split("\n\n")[:-1]
    return [json.loads(part.partition("\ndata: ")[2]) for part in parts]


def text_of(response: dict) -> str:
    return response["output"][0]["content"][0]["text"]


def test_an_answer_is_found_as_soon_as_it_is_whole(hosts) -> None:
    here, there = hosts
    answer = ask(here, metadata={"a": "b"}, instructions="Be brief.")
    assert answer["store"] is True
    assert answered(there.get(f"{RESPONSES}/{answer['id']}")) == answer
    items = answered(there.get(f"{RESPONSES}/{answer['id']}/input_items"))
    (item,) = items["data"]
    assert (item["type"], item["role"], item["content"]) == (
        "message", "user", [{"type": "input_text", "text": "hello there"}]
    )  # fmt: skip
    assert (items["first_id"], items["last_id"], items["has_more"]) == (
        item["id"], item["id"], False
    )  # fmt: skip


def test_a_chain_goes_on_without_its_instructions(hosts, prompts) -> None:
    """The next turn comes the moment that the one before ended, at the other host, streamed."""
    here, there = hosts
    first = ask(here, instructions="Speak French.")
    streamed = there.post(
        RESPONSES, {**ASK, "input": "again", "previous_response_id": first["id"], "stream": True}
    )
    second = events_of(streamed)[-1]["response"]
    assert (second["status"], second["previous_response_id"]) == ("incomplete", first["id"])
    third = ask(here, input="and again", previous_response_id=second["id"])
    said = [
        {"role": "user", "content": "hello there"},
        {"role": "assistant", "content": text_of(first)},
        {"role": "user", "content": "again"},
        {"role": "assistant", "content": text_of(second)},
        {"role": "user", "content": "and again"},
    ]
    assert [sent["messages"] for sent in prompts] == [
        [{"role": "system", "content": "Speak French."}, said[0]],
        said[:3],
        said,
    ]
    (row,) = here.settled(third["id"].replace("resp_", "req_"))
    assert row["input_tokens"] + row["cached_tokens"] == third["usage"]["input_tokens"]
    assert third["usage"]["input_tokens"] > first["usage"]["input_tokens"]


def test_references_to_items_of_every_kind(hosts, prompts) -> None:
    here, there = hosts
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
    called = ask(here, tools=[tool], tool_choice="required", max_output_tokens=60)
    call = next(item for item in called["output"] if item["type"] == "function_call")
    asked = answered(there.get(f"{RESPONSES}/{called['id']}/input_items"))["data"][0]
    ask(
        there,
        input=[
            {"type": "item_reference", "id": asked["id"]},
            {"id": call["id"]},
            {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"},
        ],
    )
    assert [message["role"] for message in prompts[-1]["messages"]] == ["user", "assistant", "tool"]
    assert prompts[-1]["messages"][1]["tool_calls"][0]["id"] == call["call_id"]
    words = ask(here)
    ask(
        there,
        input=[
            {"type": "item_reference", "id": words["output"][0]["id"]},
            {"role": "user", "content": "on"},
        ],
    )
    assert prompts[-1]["messages"][0] == {"role": "assistant", "content": text_of(words)}


def test_what_is_not_stored_or_deleted_is_not_there(hosts) -> None:
    here, there = hosts
    unstored = ask(here, store=False)
    assert unstored["store"] is False
    deleted = ask(here)
    path = f"{RESPONSES}/{deleted['id']}"
    gone = there.client.delete(there.url + path, headers=there.headers())
    assert answered(gone) == {"id": deleted["id"], "object": "response", "deleted": True}
    for name in (unstored["id"], deleted["id"], "resp_1", "resp_\x00", "x" * 4000):
        assert there.get(f"{RESPONSES}/{name.replace(chr(0), '%00')}").status_code == 404
        turn = here.post(RESPONSES, {**ASK, "previous_response_id": name})
        assert error_of(turn) == (404, "previous_response_not_found", "previous_response_id")
        reference = here.post(RESPONSES, {**ASK, "input": [{"type": "item_reference", "id": name}]})
        assert error_of(reference) == (404, "not_found", "input[0]")
    assert there.client.delete(there.url + path, headers=there.headers()).status_code == 404


def test_a_chain_whose_beginning_was_deleted_says_so(stack) -> None:
    first = ask(stack)
    second = ask(stack, previous_response_id=first["id"])
    stack.client.delete(f"{stack.url}{RESPONSES}/{first['id']}", headers=stack.headers())
    refused = stack.post(RESPONSES, {**ASK, "previous_response_id": second["id"]})
    assert error_of(refused)[:2] == (404, "previous_response_not_found")
    assert first["id"] in refused.json()["error"]["message"]


def test_another_teams_answer_does_not_exist(hosts) -> None:
    here, there = hosts
    answer = ask(here)
    other = here.key("stranger", team="others").token
    path = f"{RESPONSES}/{answer['id']}"
    assert there.get(path, other).status_code == 404
    assert there.get(f"{path}/input_items", other).status_code == 404
    assert there.post(f"{path}/cancel", {}, other).status_code == 404
    assert there.client.delete(there.url + path, headers=there.headers(other)).status_code == 404
    item = answer["output"][0]["id"]
    for members in (
        {"previous_response_id": answer["id"]},
        {"input": [{"type": "item_reference", "id": item}]},
    ):
        assert here.post(RESPONSES, {**ASK, **members}, other).status_code == 404
    assert answered(there.get(path)) == answer
    colleague = here.key("colleague").token
    assert answered(there.get(path, colleague)) == answer


def test_a_chain_has_the_tightest_residency_of_its_members(stack, prompts) -> None:
    """An answer that a confined key got reaches no API, whoever of the team goes on with it."""
    confined = stack.key("confined", residency="internal_only").token
    first = ask(stack, confined)
    refused = stack.post(RESPONSES, {**ASK, "model": "api", "previous_response_id": first["id"]})
    assert error_of(refused)[:2] == (403, "residency")
    item = first["output"][0]["id"]
    refers = [{"type": "item_reference", "id": item}, {"role": "user", "content": "on"}]
    assert stack.post(RESPONSES, {**ASK, "model": "api", "input": refers}).status_code == 403
    second = ask(stack, previous_response_id=first["id"])  # on our own engine it goes on
    third = stack.post(RESPONSES, {**ASK, "model": "api", "previous_response_id": second["id"]})
    assert third.status_code == 403
    control = ask(stack)
    ask(stack, model="api", previous_response_id=control["id"])
    assert len(prompts) == 4


def test_input_items_in_pages(stack) -> None:
    turns = [{"role": "user", "content": f"say {number}"} for number in range(5)]
    answer = ask(stack, input=turns)
    path = f"{RESPONSES}/{answer['id']}/input_items"

    def page(query: str) -> tuple[list[str], bool, str]:
        found = answered(stack.get(f"{path}?{query}"))
        texts = [item["content"][0]["text"] for item in found["data"]]
        return texts, found["has_more"], found["last_id"]

    assert page("limit=2")[:2] == (["say 4", "say 3"], True)
    texts, more, last = page("limit=2&order=asc")
    assert (texts, more) == (["say 0", "say 1"], True)
    assert page(f"limit=4&order=asc&after={last}")[:2] == (["say 2", "say 3", "say 4"], False)
    assert stack.get(f"{path}?after=msg_1").status_code == 404
    assert stack.get(f"{path}?limit=0").status_code == 400


def test_events_are_told_once_more(stack) -> None:
    answer = ask(stack)
    path = f"{RESPONSES}/{answer['id']}?stream=true"
    events = events_of(stack.get(path))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[0]["type"] == "response.created"
    assert events[-1] == {
        "type": "response.incomplete", "sequence_number": len(events) - 1, "response": answer
    }  # fmt: skip
    assert "".join(e["delta"] for e in events if e["type"].endswith("text.delta")) == text_of(
        answer
    )
    assert events_of(stack.get(f"{path}&starting_after=3")) == events[4:]


def test_members_that_exclude_each_other(stack) -> None:
    answer = ask(stack)
    both = {"previous_response_id": answer["id"], "conversation": "conv_1"}
    assert error_of(stack.post(RESPONSES, {**ASK, **both}))[0] == 400
    unstored = {"background": True, "store": False}
    assert error_of(stack.post(RESPONSES, {**ASK, **unstored})) == (400, None, "background")


def test_tokens_are_counted_with_all_that_is_continued(stack) -> None:
    answer = ask(stack)
    path = f"{RESPONSES}/input_tokens"
    alone = answered(stack.post(path, {"model": "own", "input": "again"}))
    assert alone["object"] == "response.input_tokens"
    continued = {"model": "own", "input": "again", "previous_response_id": answer["id"]}
    assert answered(stack.post(path, continued))["input_tokens"] > alone["input_tokens"]


def test_nothing_of_an_answer_lies_in_the_open(hosts) -> None:
    here, _ = hosts
    answer = ask(here, input=SECRET, model="own")
    (row,) = here.settled(answer["id"].replace("resp_", "req_"))
    assert SECRET not in str(row)
    if here.runtime.ledger_url.startswith("sqlite"):
        files = [path for path in here.state.rglob("*") if path.is_file()]
        assert (here.state / "stored.sqlite3").stat().st_mode & 0o077 == 0
        assert not [path for path in files if SECRET.encode() in path.read_bytes()]
        with sqlite3.connect(here.state / "stored.sqlite3") as connection:
            (count,) = connection.execute("SELECT count(*) FROM stored_objects").fetchone()
        assert count > 0
        return
    engine = make_engine(here.runtime.ledger_url)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT * FROM stored_objects")).all()
    engine.dispose()
    assert rows
    assert SECRET.encode() not in b"".join(row.sealed + row.wrapped_key for row in rows)


def test_a_background_answer_that_nothing_makes_is_refused_at_once(stack) -> None:
    """A client that was told `queued` polls an answer that never comes."""
    asked = {**ASK, "background": True}
    unknown = stack.post(RESPONSES, {**asked, "model": "nobody"})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    narrow = stack.key("narrow", models=("own",)).token
    forbidden = stack.post(RESPONSES, {**asked, "model": "chat"}, narrow)
    assert forbidden.status_code == 403


@pytest.fixture
def broken(stack):
    """`broken(**members)`: the events of a stream whose target breaks off."""

    def ask(**members) -> list[dict]:
        stack.fault("alpha", fault="cut", after_tokens=3)
        try:
            answer = stack.post(
                RESPONSES, {"model": "api", "input": "hi", "stream": True, **members}
            )
        finally:
            stack.forgive("alpha")
        return events_of(answer)

    return ask


def test_a_stream_that_failed_is_found_as_far_as_it_came(stack, broken) -> None:
    """Red before: 404 by the id that its client was told."""
    conversation = answered(stack.post("/v1/conversations", {}))["id"]
    told = broken(conversation=conversation)[-1]
    assert (told["type"], told["response"]["store"]) == ("response.failed", True)
    path = f"{RESPONSES}/{told['response']['id']}"
    found = answered(stack.get(path))
    assert found == told["response"]
    assert (found["status"], found["error"]["code"]) == ("failed", "server_error")
    (item,) = found["output"]
    assert (item["status"], bool(item["content"][0]["text"])) == ("incomplete", True)
    events = stack.get(path + "?stream=true").text
    assert "event: response.failed" in events
    items = answered(stack.get(f"/v1/conversations/{conversation}/items"))["data"]
    assert items == [], "its turn is asked again"
    on = stack.post(RESPONSES, {"model": "own", "input": "on", "previous_response_id": found["id"]})
    error = on.json()["error"]
    assert (on.status_code, error["param"]) == (400, "previous_response_id")
    assert "a response that failed" in error["message"]
    assert "wait" not in error["message"]


def test_a_stream_that_failed_and_is_not_to_be_stored_is_not(stack, broken) -> None:
    told = broken(store=False)[-1]
    assert (told["type"], told["response"]["store"]) == ("response.failed", False)
    assert stack.get(f"{RESPONSES}/{told['response']['id']}").status_code == 404


def test_a_failure_that_cannot_be_stored_says_so(stack, broken, monkeypatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(object_store.rows, "store_objects", fail)
    told = broken()[-1]
    assert (told["type"], told["response"]["store"]) == ("response.failed", False)
