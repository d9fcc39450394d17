"""One turn as a request: what its message may say, what a request sees, what its client hears."""

import json
from typing import Any

import pytest

from gateway.errors import RequestError
from gateway.http.connection import connection_of
from gateway.request.sockets.socket_turn import SocketTurn, error_event, read_turn, refusal_event

START = {"type": "http.response.start", "status": 200}


class ToldEvents:
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    async def __call__(self, text: str) -> None:
        self.events.append(json.loads(text))


def body(data: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


def event(**members: Any) -> bytes:
    return b"event: x\ndata: " + json.dumps(members).encode() + b"\n\n"


def test_a_message_is_the_body_of_a_request() -> None:
    asked = {"type": "response.create", "model": "m", "input": "hi", "previous_response_id": "r1"}
    turn = read_turn(json.dumps(asked | {"generate": False, "stream_options": None}))
    assert json.loads(turn.body) == {
        "model": "m", "input": "hi", "previous_response_id": "r1", "stream": True,
        "stream_options": None,
    }  # fmt: skip
    assert (turn.previous, turn.warms_up) == ("r1", True)
    assert not read_turn(json.dumps(asked).encode()).warms_up


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"type": 1}', '{"type":"x"}', b"\xff", '{"type":"a","type":"b"}']
)
def test_what_is_no_message_is_refused(text: str | bytes) -> None:
    with pytest.raises(RequestError) as raised:
        read_turn(text)
    assert raised.value.row.status == 400


def test_a_request_has_the_handshakes_headers_but_not_what_was_about_it() -> None:
    sent = [
        (b"authorization", b"Bearer x"), (b"traceparent", b"00-1"), (b"x-session-id", b"s"),
        (b"connection", b"upgrade"), (b"upgrade", b"websocket"), (b"sec-websocket-key", b"k"),
        (b"content-type", b"text/plain"), (b"content-length", b"7"), (b"expect", b"100-continue"),
        (b"idempotency-key", b"k"), (b"content-encoding", b"gzip"), (b"origin", b"https://a.b"),
    ]  # fmt: skip
    turn = SocketTurn(None, b"{}", ToldEvents())
    scope = turn.scope({"type": "websocket", "path": "/x", "headers": sent, "client": ("a", 1)},
                       {"more": 1})  # fmt: skip
    assert (scope["type"], scope["method"], scope["path"]) == ("http", "POST", "/v1/responses")
    assert (scope["more"], scope["client"]) == (1, ("a", 1))
    assert scope["headers"] == [*sent[:3], (b"content-type", b"application/json")]
    assert connection_of(scope) is turn
    assert (turn.take_body(), turn.take_body()) == (b"{}", None)


async def test_events_are_told_as_they_come_and_headers_once() -> None:
    told = ToldEvents()
    turn = SocketTurn(None, b"", told)
    headers = [(b"x-request-id", b"req_1"), (b"cache-control", b"no-cache")]
    await turn.send({**START, "headers": headers})
    await turn.send(body(b": keep-alive\n\n"))
    await turn.send(body(event(type="response.created")[:9]))
    assert told.events == []
    await turn.send(body(event(type="response.created")[9:] + event(type="a")))
    await turn.send(body(event(type="response.completed"), more=False))
    assert told.events == [
        {"type": "response.created", "headers": {"x-request-id": "req_1"}},
        {"type": "a"},
        {"type": "response.completed"},
    ]
    assert not turn.failed


async def test_an_answer_that_breaks_ends_with_one_event() -> None:
    told = ToldEvents()
    turn = SocketTurn(None, b"", told)
    await turn.send({**START, "headers": []})
    await turn.send(body(event(type="a") + event(type="error", code=None)))
    await turn.send(body(event(type="response.failed"), more=False))
    assert [event["type"] for event in told.events] == ["a", "response.failed"]
    assert turn.failed


async def test_a_refusal_is_an_event_with_its_status_and_headers() -> None:
    told = ToldEvents()
    turn = SocketTurn(None, b"", told)
    error = {"message": "no", "type": "rate_limit_error", "param": None, "code": "rate"}
    await turn.send({"type": "http.response.start", "status": 429,
                     "headers": [(b"retry-after", b"3"), (b"content-length", b"9")]})  # fmt: skip
    text = json.dumps({"error": error}).encode()
    await turn.send(body(text[:20]))
    await turn.send(body(text[20:], more=False))
    assert told.events == [
        {"type": "error", "status": 429, "error": error, "headers": {"retry-after": "3"}}
    ]
    assert turn.failed


def test_every_error_event_has_a_code() -> None:
    assert json.loads(error_event(502, b"not JSON"))["error"]["code"] == "server_error"
    told = json.loads(refusal_event(RequestError("bad_request", "no", param="input")))
    assert told["error"]["code"] == "invalid_request_error"
    assert (told["status"], told["error"]["param"]) == (400, "input")


def test_a_refusal_that_no_request_came_to_says_whose_fault_it_is_and_when_to_try_again() -> None:
    told = json.loads(refusal_event(RequestError("overloaded", "later", retry_after_s=1.2)))
    assert told["headers"] == {"x-breakeven-fault": "capacity", "retry-after": "2"}
    told = json.loads(refusal_event(RequestError("bad_request", "no", retry=False)))
    assert told["headers"] == {"x-breakeven-fault": "request", "x-should-retry": "false"}


async def test_whoever_left_hears_nothing_and_ends_the_request() -> None:
    told, left = ToldEvents(), []
    turn = SocketTurn(None, b"", told)
    forget = turn.listen(lambda: left.append(1))
    forget()
    turn.listen(lambda: left.append(2))
    await turn.send({**START, "headers": []})
    turn.hang_up()
    await turn.send(body(event(type="a")))
    turn.listen(lambda: left.append(3))
    assert (left, told.events) == ([2, 3], [])
    assert (turn.push(b"x"), turn.answer(200, [], b"{}"), turn.unsent()) == (False, False, 0)
    turn.abort()
