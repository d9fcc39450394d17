"""Clients that leave native Messages: what was searched and said until then is booked."""

import json

import pytest

BODY = {
    "max_tokens": 50,
    "messages": [{"role": "user", "content": "what is new?"}],
    "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}],
    "stream": True,
}


def searching(*, stops, searches=3, goes_on_s=0.0, ends="message_stop"):
    import asyncio

    async def script(call):
        call.bill.input = 200
        call.head()
        call.event(
            {
                "type": "message_start",
                "message": {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "model": "m",
                    "content": [],
                    "stop_reason": None,
                    "usage": {"input_tokens": 200, "output_tokens": 1},
                },
            }
        )
        for number in range(searches):
            if stops and call.gone.is_set():
                return
            block = {
                "type": "server_tool_use",
                "id": f"srvtoolu_{number}",
                "name": "web_search",
                "input": {},
            }
            call.event({"type": "content_block_start", "index": 2 * number, "content_block": block})
            call.event(
                {
                    "type": "content_block_delta",
                    "index": 2 * number,
                    "delta": {"type": "input_json_delta", "partial_json": '{"query": "x"}'},
                }
            )
            call.event({"type": "content_block_stop", "index": 2 * number})
            call.bill.searches += 1
            call.bill.input += 3000
            call.bill.output += 5
            result = {
                "type": "web_search_tool_result",
                "tool_use_id": f"srvtoolu_{number}",
                "content": [],
            }
            call.event(
                {"type": "content_block_start", "index": 2 * number + 1, "content_block": result}
            )
            call.event({"type": "content_block_stop", "index": 2 * number + 1})
            await asyncio.sleep(0.02)
        call.wrote.set()
        call.event(
            {
                "type": "content_block_start",
                "index": 9,
                "content_block": {"type": "text", "text": ""},
            }
        )
        for _ in range(10):
            await asyncio.sleep(goes_on_s / 10)
            if stops and call.gone.is_set():
                return
            call.bill.output += 1
            call.event(
                {
                    "type": "content_block_delta",
                    "index": 9,
                    "delta": {"type": "text_delta", "text": "word "},
                }
            )
        if ends == "drop":
            await call.drop()
            return
        usage = {
            "input_tokens": call.bill.input,
            "output_tokens": call.bill.output,
            "server_tool_use": {"web_search_requests": call.bill.searches},
        }
        call.event({"type": "content_block_stop", "index": 9})
        call.event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
        call.event({"type": "message_stop"})

    return script


def leave(hostile, team, body, path="/v1/messages"):
    stack = hostile.stack
    before = len(hostile.provider.calls)
    connection = raw(stack, body, path, hostile.token(team))
    try:
        call = hostile.patiently(lambda: hostile.provider.calls[before:] or None, 3)[0]
    except AssertionError:
        print(connection.recv(9999))
        connection.close()
        raise
    assert call.wrote.wait(10)
    connection.close()
    return call


def raw(stack, body, path, token):
    import socket

    connection = socket.create_connection(("127.0.0.1", stack.port), timeout=20)
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: g\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {token}\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    connection.sendall(head.encode() + data)
    return connection


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
@pytest.mark.parametrize("model", ["claude", "claudestops"])
@pytest.mark.parametrize("how", ["leave", "drop", "read"])
def test_searches_of_an_answer_that_is_left_are_booked(hostile, model, path, how) -> None:
    team = f"n-{model}-{path[-4:]}-{how}"
    body = dict(BODY, model=model)
    if "chat" in path:
        body = {**body, "tools": [], "web_search_options": {"search_context_size": "low"}}
        body.pop("tools")
    hostile.play(
        model,
        searching(
            stops="stops" in model,
            goes_on_s=0.5 if how == "leave" else 0,
            ends="drop" if how == "drop" else "",
        ),
    )
    if how == "leave":
        leave(hostile, team, body, path)
    else:
        answer = hostile.stack.post(path, body, hostile.token(team))
        print(answer.status_code, answer.text[-300:])
    rows = hostile.quiet_rows(team)
    print(
        [
            (
                r["attempt_no"],
                r["status"],
                r["http_status"],
                r["basis"],
                r["flag"],
                r["cost_pusd"],
                r["claimed_pusd"],
                r["bound_pusd"],
            )
            for r in rows
        ],
        [(c.bill.pusd, c.bill) for c in hostile.sent(team)],
    )
    hostile.judge(team)
