"""`/v1/responses` as a WebSocket, on a running host: what a client is told, and when it ends."""

import json
import time
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from gateway.clock import Clock
from gateway.request.sockets.responses_socket import WAITING
from gateway.request.sockets.responses_sockets import is_socket_path
from ledger.identity.keys import revoke_key

ENDS = ("response.completed", "response.failed", "response.incomplete", "error")
DONE = "response.incomplete"  # each answer is cut short: it costs less
SHORT = {"type": "response.create", "model": "chat", "store": False, "max_output_tokens": 4}
LONG = {**SHORT, "model": "steady", "input": "hi", "max_output_tokens": 4000}
LIMITS = {"cors_origins": ["https://app.example.com"]}


@pytest.fixture(scope="module")
def host(tmp_path_factory, running):
    with running(tmp_path_factory.mktemp("host"), server=LIMITS) as stack:
        yield stack


def opened(stack, token: str | None = None, path: str = "/v1/responses", **more) -> Any:
    headers = {"authorization": f"Bearer {token or stack.token}"} | more.pop("headers", {})
    url = f"ws://127.0.0.1:{stack.port}{path}"
    return connect(url, additional_headers=headers, proxy=None, **more)


def turn(socket: ClientConnection, **asked: Any) -> list[dict[str, Any]]:
    """Ask; all events up to the one that ends the turn."""
    socket.send(json.dumps(SHORT | asked))
    return answer(socket)


def answer(socket: ClientConnection) -> list[dict[str, Any]]:
    events = [json.loads(socket.recv(20))]
    while events[-1]["type"] not in ENDS:
        events.append(json.loads(socket.recv(20)))
    return events


def test_a_turn_is_a_request_of_its_own(host) -> None:
    with opened(host) as socket:
        for text in ("first", "second"):
            events = turn(socket, input=text)
            assert events[0]["type"] == "response.created"
            assert [event["sequence_number"] for event in events] == list(range(len(events)))
            assert "headers" not in events[1]
            headers, response = events[0]["headers"], events[-1]["response"]
            assert response["status"] == "incomplete"
            assert response["output"][0]["content"][0]["text"]
            (row,) = host.settled(headers["x-request-id"])
            assert row["output_tokens"] == response["usage"]["output_tokens"] > 0
            assert row["cost_pusd"] is not None
            assert headers["x-breakeven-backend"]


def end_of(socket: ClientConnection) -> tuple[dict[str, Any], int]:
    """The last event, and the code that the socket is closed with."""
    last: dict[str, Any] = {}
    try:
        while True:
            last = json.loads(socket.recv(20))
    except ConnectionClosed as closed:
        return last, closed.rcvd.code


def failed(events: list[dict[str, Any]]) -> tuple[int, str]:
    """The status and code of the error that is all that a turn came to."""
    assert [event["type"] for event in events] == ["error"]
    return events[0]["status"], events[0]["error"]["code"]


def test_an_answer_that_is_stored_nowhere_is_gone_on_from_on_its_socket_alone(host) -> None:
    with opened(host) as socket:
        first = turn(socket, input="the word is cobalt")[-1]["response"]
        second = turn(socket, input="which?", previous_response_id=first["id"])[-1]["response"]
        assert second["previous_response_id"] == first["id"]
        said = first["output"][0]["content"][0]["text"]
        assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"]
        assert said
        gone = turn(socket, input="on", previous_response_id=first["id"])  # it is not the last one
        assert failed(gone) == (404, "previous_response_not_found")
        third = turn(socket, input="on", previous_response_id=second["id"])[-1]
        assert third["type"] == DONE
    with opened(host) as other:
        gone = turn(other, input="on", previous_response_id=third["response"]["id"])
        assert failed(gone) == (404, "previous_response_not_found")
        assert turn(other, input="anew")[-1]["type"] == DONE


def test_a_stored_answer_is_found_on_every_socket_and_over_http(host) -> None:
    with opened(host) as socket:
        first = turn(socket, input="hi")[-1]["response"]
        kept = turn(socket, input="keep", store=True, previous_response_id=first["id"])[-1]
        name = kept["response"]["id"]
        assert kept["response"]["store"] is True
    with opened(host) as other:
        assert turn(other, input="on", previous_response_id=name)[-1]["type"] == DONE
    items = host.get(f"/v1/responses/{name}/input_items?order=asc").json()["data"]
    assert [item["content"][0]["text"] for item in items][0::2] == ["hi", "keep"]
    assert host.get(f"/v1/responses/{first['id']}").status_code == 404


def test_a_turn_that_fails_is_not_gone_on_from(host) -> None:
    orphan = [{"type": "function_call_output", "call_id": "call_none", "output": "x"}]
    with opened(host) as socket:
        name = turn(socket, input="hi")[-1]["response"]["id"]
        refused = turn(socket, input=orphan, previous_response_id=name)
        assert failed(refused)[0] == 400
        assert refused[0]["error"]["param"] == "input[0].call_id"
        again = turn(socket, input="on", previous_response_id=name)
        assert failed(again) == (404, "previous_response_not_found")


def test_a_failure_of_another_turn_forgets_nothing(host) -> None:
    with opened(host) as socket:
        name = turn(socket, input="hi")[-1]["response"]["id"]
        assert failed(turn(socket, input="hi", model="none")) == (404, "model_not_found")
        assert turn(socket, input="on", previous_response_id=name)[-1]["type"] == DONE


def test_a_warm_up_asks_nobody_and_is_gone_on_from(host) -> None:
    with opened(host) as socket:
        before = host.booked()
        events = turn(socket, input="the word is cobalt", generate=False)
        warm = events[-1]["response"]
        assert events[-1]["type"] == ENDS[0]
        assert (warm["output"], warm["usage"]["total_tokens"]) == ([], 0)
        assert host.booked() == before
        assert failed(turn(socket, input="hi", model="none", generate=False))[0] == 404
        events = turn(socket, input="which?", previous_response_id=warm["id"])
        assert events[-1]["type"] == DONE
        (row,) = host.settled(events[0]["headers"]["x-request-id"])
        assert row["input_tokens"] > 5


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"type": "session.update"}, None),
        ({"background": True}, "unsupported_parameter"),
        ({"conversation": "conv_1"}, "unsupported_parameter"),
        ({"stream": False}, "unsupported_parameter"),
        ({"input": None}, None),
    ],
)
def test_what_no_socket_takes_is_an_event(host, asked: dict[str, Any], code: str | None) -> None:
    with opened(host) as socket:
        status, told = failed(turn(socket, **{"input": "hi"} | asked))
        assert (status, told) == (400, code or "invalid_request_error")
        socket.send("no JSON")
        assert failed(answer(socket))[0] == 400
        assert turn(socket, input="hi", stream=True)[-1]["type"] == DONE


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"token": "gw_no_key"}, 401, "invalid_api_key"),
        ({"headers": {"origin": "https://evil.example"}}, 403, "forbidden"),
    ],
)
def test_a_handshake_is_refused_as_a_request_is(host, more, status: int, code: str) -> None:
    with pytest.raises(InvalidStatus) as raised, opened(host, **more):
        pass
    response = raised.value.response
    assert response.status_code == status
    assert json.loads(response.body)["error"]["code"] == code
    assert response.headers["x-request-id"]


def test_a_page_of_a_configured_origin_and_other_addresses_may_connect(host) -> None:
    allowed = {"origin": LIMITS["cors_origins"][0]}
    for path, headers in (("/v1/responses", allowed), ("/openai/v1/responses", {})):
        with opened(host, path=path, headers=headers) as socket:
            assert turn(socket, input="hi")[-1]["type"] == DONE


def test_other_paths_are_no_websockets(host) -> None:
    with pytest.raises(InvalidStatus) as raised, opened(host, path="/v1/embeddings"):
        pass
    assert raised.value.response.status_code == 405


def test_a_revoked_key_ends_its_socket_in_mid_answer(host) -> None:
    made = host.key("to revoke")
    with opened(host, made.token) as socket, opened(host) as other:
        socket.send(json.dumps({"type": ENDS[0], "model": "steady"}))
        assert failed(answer(socket))[0] == 400
        socket.send(json.dumps(LONG))
        begun = json.loads(socket.recv(20))
        host.call(_revoke(host, made.key_id))
        began_s = time.monotonic()
        last, code = end_of(socket)
        assert time.monotonic() - began_s < 1.5  # a second, and what a busy machine adds
        assert (last["status"], last["error"]["code"]) == (401, "invalid_api_key")
        assert code == 1008
        (row,) = host.settled(begun["headers"]["x-request-id"])
        assert row["status"] == "client_gone"
        assert turn(other, input="hi")[-1]["type"] == DONE


def test_messages_wait_in_a_row_and_not_without_end(host) -> None:
    with opened(host) as socket:
        for index in range(3):
            socket.send(json.dumps(SHORT | {"input": f"say {index}"}))
        starts = [answer(socket) for _ in range(3)]
        assert [events[-1]["type"] for events in starts] == [DONE] * 3
    with opened(host) as socket:
        for _ in range(WAITING + 2):
            socket.send(json.dumps(LONG))
        last, code = end_of(socket)
        assert (last["error"]["code"], code) == ("overloaded", 1008)


def test_who_hangs_up_ends_the_answer(host) -> None:
    with opened(host) as socket:
        socket.send(json.dumps(LONG))
        begun = json.loads(socket.recv(20))
    (row,) = host.settled(begun["headers"]["x-request-id"])
    assert row["status"] == "client_gone"


def test_a_budget_that_is_spent_refuses_the_turn_and_not_the_socket(tmp_path, running) -> None:
    budget = {"scope": "team:search", "usd": "0.00000001", "period": "day", "hard": True}
    with running(tmp_path, budgets=[budget]) as stack, opened(stack) as socket:
        for _ in range(2):
            assert failed(turn(socket, model="api", input="hi")) == (429, "budget_exceeded")
        assert stack.rows() == []


def test_a_stop_finishes_the_answer_and_says_so(tmp_path, running) -> None:
    with running(tmp_path) as stack, opened(stack) as busy, opened(stack) as quiet:
        busy.send(json.dumps(SHORT | {"input": "hi", "max_output_tokens": 60}))
        assert json.loads(busy.recv(20))["type"] == "response.created"
        stack.call(_stop(stack))
        with pytest.raises(ConnectionClosed) as raised:
            quiet.recv(20)
        assert raised.value.rcvd.code == 1012
        assert answer(busy)[-1]["type"] == DONE
        with pytest.raises(ConnectionClosed) as raised:
            busy.recv(20)
        assert raised.value.rcvd.code == 1012


async def _stop(stack) -> None:
    stack._servers[-1][0].should_exit = True


async def _revoke(stack, key_id: str) -> None:
    with stack.database.begin() as connection:
        assert revoke_key(connection, key_id, now_us=Clock().wall_us())


@pytest.mark.parametrize(
    ("path", "served"),
    [
        ("/v1/responses", True),
        ("/v1/responses/", True),
        ("/responses", True),
        ("/openai/v1/responses", True),
        ("/v1/responses/compact", False),
        ("/v1/realtime", False),
        ("/", False),
    ],
)
def test_which_paths_are_sockets(path: str, served: bool) -> None:
    assert is_socket_path(path) is served
