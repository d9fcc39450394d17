"""`/v1/responses` as a WebSocket, on a running host: what a client is told, and when it ends."""

import json
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from gateway.errors import TABLE
from gateway.request.sockets.responses_sockets import is_socket_path

ENDS = ("response.completed", "response.failed", "response.incomplete", "error")
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
    socket.send(json.dumps({"type": "response.create", "model": "chat", "store": False} | asked))
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
            assert response["status"] == "completed"
            assert response["output"][0]["content"][0]["text"]
            (row,) = host.settled(headers["x-request-id"])
            assert row["output_tokens"] == response["usage"]["output_tokens"] > 0
            assert row["cost_pusd"] is not None
            assert headers["x-breakeven-backend"]
