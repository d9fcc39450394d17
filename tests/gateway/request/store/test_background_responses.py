"""Background responses over real sockets: they outlive their client, end on demand, are billed."""

import json
import threading

import httpx
import pytest

from gateway.request.store import background_responses, object_store

RESPONSES = "/v1/responses"
ASK = {"model": "own", "input": "hello there", "max_output_tokens": 12, "background": True}
LONG = {**ASK, "model": "steady", "max_output_tokens": 1000}  # 50 s, if nobody ends it


def answered(answer: httpx.Response) -> dict:
    assert answer.status_code == 200, answer.text
    return answer.json()


def events_in(stream: str) -> list[dict]:
    lines = stream.splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


def row_of(stack, response: dict) -> dict:
    (row,) = stack.settled(response["id"].replace("resp_", "req_"))
    return row


@pytest.fixture
def finished(stack, patiently):
    """`finished(response)`: the response once it is no longer made."""

    def wait(response: dict, at=stack) -> dict:
        path = f"{RESPONSES}/{response['id']}"

        def look() -> dict | None:
            found = answered(at.get(path))
            return None if found["status"] in ("queued", "in_progress") else found

        return patiently(look)

    return wait


def test_a_response_is_made_after_its_client_was_answered(stack, finished) -> None:
    queued = answered(stack.post(RESPONSES, ASK))
    assert (queued["status"], queued["background"], queued["output"]) == ("queued", True, [])
    done = finished(queued)
    assert (done["id"], done["status"], done["background"]) == (queued["id"], "incomplete", True)
    assert done["usage"]["output_tokens"] == 12
    row = row_of(stack, queued)
    assert (row["status"], row["output_tokens"]) == ("finished", 12)
    assert row["cost_pusd"] > 0
    next_turn = {**ASK, "background": False, "previous_response_id": queued["id"]}
    assert answered(stack.post(RESPONSES, next_turn))["status"] == "incomplete"
    again = stack.post(f"{RESPONSES}/{queued['id']}/cancel", {})
    assert answered(again) == done, "what is whole stays"


def test_cancelling_ends_it_and_books_what_was_made(stack, finished, patiently) -> None:
    queued = answered(stack.post(RESPONSES, LONG))
    patiently(lambda: stack.rows("request_id = :n", n=queued["id"].replace("resp_", "req_")))
    turn = stack.post(RESPONSES, {**ASK, "background": False, "previous_response_id": queued["id"]})
    assert (turn.status_code, turn.json()["error"]["param"]) == (400, "previous_response_id")
    cancelled = answered(stack.post(f"{RESPONSES}/{queued['id']}/cancel", {}))
    assert cancelled["status"] == "cancelled"
    assert finished(queued)["status"] == "cancelled"
    turn = stack.post(RESPONSES, {**ASK, "background": False, "previous_response_id": queued["id"]})
    assert turn.status_code == 400
    assert "was cancelled" in turn.json()["error"]["message"], "red before: wait for `completed`"
    assert row_of(stack, queued)["status"] != "finished"
    patiently(lambda: stack.app.hot.in_flight == 0)
    assert finished(queued)["status"] == "cancelled"


def test_a_stream_that_is_cancelled_ends_as_its_stored_answer_does(stack, finished) -> None:
    """Red before: it failed, since "the request took too long"."""
    told = []
    asked = {**LONG, "stream": True}
    with stack.client.stream(
        "POST", stack.url + RESPONSES, json=asked, headers=stack.headers()
    ) as s:
        for line in s.iter_lines():
            if not line.startswith("data: "):
                continue
            told.append(json.loads(line[6:]))
            if told[-1]["type"].endswith("text.delta") and len(told) < 8:
                answered(stack.post(f"{RESPONSES}/{told[0]['response']['id']}/cancel", {}))
    last = told[-1]
    assert (last["type"], last["response"]["status"]) == ("response.cancelled", "cancelled")
    assert "error" not in {event["type"] for event in told}
    assert last["response"]["error"] is None
    stored = finished(told[0]["response"])
    assert (stored["status"], stored["error"]) == ("cancelled", None)
    path = f"{RESPONSES}/{stored['id']}?stream=true&starting_after={last['sequence_number'] - 1}"
    (again,) = events_in(stack.get(path).text)
    assert (again["type"], again["sequence_number"]) == (last["type"], last["sequence_number"])


def test_only_a_background_response_is_cancelled(stack) -> None:
    made = answered(stack.post(RESPONSES, {**ASK, "background": False}))
    assert stack.post(f"{RESPONSES}/{made['id']}/cancel", {}).status_code == 400


def test_deleting_it_ends_it(stack, patiently) -> None:
    queued = answered(stack.post(RESPONSES, LONG))
    path = f"{stack.url}{RESPONSES}/{queued['id']}"
    assert stack.client.delete(path, headers=stack.headers()).status_code == 200
    patiently(lambda: stack.app.hot.in_flight == 0)
    assert stack.get(f"{RESPONSES}/{queued['id']}").status_code == 404
    assert row_of(stack, queued)["status"] != "finished"


def test_a_streamed_one_goes_on_when_its_client_leaves(stack, finished) -> None:
    asked = {**LONG, "max_output_tokens": 30, "stream": True}
    with stack.client.stream(
        "POST", stack.url + RESPONSES, json=asked, headers=stack.headers()
    ) as s:
        line = next(line for line in s.iter_lines() if line.startswith("data: "))
        response = json.loads(line[6:])["response"]
    done = finished(response)
    assert (done["status"], done["usage"]["output_tokens"]) == ("incomplete", 30)
    row = row_of(stack, response)
    assert (row["status"], row["output_tokens"]) == ("finished", 30)


def test_a_client_that_lost_its_stream_goes_on_where_it_was(stack, finished) -> None:
    """Red before: it missed pieces of the text, or got an empty stream."""
    live = events_in(stack.post(RESPONSES, {**ASK, "stream": True}).text)
    path = f"{RESPONSES}/{live[0]['response']['id']}?stream=true"
    assert "told" not in finished(live[0]["response"])
    assert len([event for event in live if event["type"].endswith("text.delta")]) > 2
    for after in (3, 6, len(live) - 2):
        again = events_in(stack.get(f"{path}&starting_after={after}").text)
        assert again == live[after + 1 :]
    assert events_in(stack.get(f"{path}&starting_after={len(live) - 1}").text) == []


def test_a_failure_is_told_by_the_response(stack, finished) -> None:
    stack.fault("alpha", fault="status", status=500)
    queued = answered(stack.post(RESPONSES, {**ASK, "model": "api"}))
    failed = finished(queued)
    stack.forgive("alpha")
    assert (failed["status"], failed["error"]["code"]) == ("failed", "server_error")
    refused = answered(stack.post(RESPONSES, {**ASK, "max_output_tokens": 10**9}))
    assert finished(refused)["status"] == "failed"
    assert finished(refused)["error"]["code"] == "invalid_prompt", "another try cannot help"
    assert stack.post(RESPONSES, {**ASK, "model": "nobody"}).status_code in {200, 404}


def test_nothing_is_dispatched_that_cannot_be_stored(stack, monkeypatch) -> None:
    def fail(*_: object, **__: object) -> bool:
        raise OSError(28, "No space left on device")

    before = stack.booked()
    monkeypatch.setattr(object_store.rows, "store_objects", fail)
    refused = stack.post(RESPONSES, ASK)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert stack.booked() == before


def test_a_whole_answer_waits_for_the_database(stack, finished, monkeypatch, patiently) -> None:
    """Its client is not there to be told that it is not stored."""
    monkeypatch.setattr(background_responses, "RETRY_S", 0.05)
    real, calls = object_store.rows.store_objects, []
    back = threading.Event()

    def fail_at_the_end(engine, objects, *given, **named) -> bool:
        calls.append(objects[0].status)
        if objects[0].status != "queued" and not back.is_set():
            raise OSError(28, "No space left on device")
        return real(engine, objects, *given, **named)

    monkeypatch.setattr(object_store.rows, "store_objects", fail_at_the_end)
    queued = answered(stack.post(RESPONSES, ASK))
    patiently(lambda: len(calls) > 3)
    assert answered(stack.get(f"{RESPONSES}/{queued['id']}"))["status"] == "queued"
    assert row_of(stack, queued)["status"] == "finished"
    back.set()
    assert finished(queued)["usage"]["output_tokens"] == 12


def test_a_response_whose_worker_died_has_failed(stack, finished, monkeypatch, patiently) -> None:
    monkeypatch.setattr("gateway.request.store.response_keeper.LEASE_US", -1)
    monkeypatch.setattr(background_responses, "LEASE_US", -1)
    queued = answered(stack.post(RESPONSES, LONG))
    failed = finished(queued)
    assert failed["status"] == "failed"
    assert "worker" in failed["error"]["message"]
    turn = stack.post(RESPONSES, {**ASK, "background": False, "previous_response_id": queued["id"]})
    assert "a response that failed" in turn.json()["error"]["message"]
    stack.client.delete(f"{stack.url}{RESPONSES}/{queued['id']}", headers=stack.headers())
    patiently(lambda: stack.app.hot.in_flight == 0)


def test_a_worker_makes_so_many_at_once(run_stack, patiently) -> None:
    with run_stack(store={"background_runs": 1}) as stack:
        queued = answered(stack.post(RESPONSES, LONG))
        assert stack.post(RESPONSES, ASK).status_code == 503
    # The worker stopped: what it made has failed, and is booked.
    assert [row["request_id"] for row in stack.rows()] == [queued["id"].replace("resp_", "req_")]
