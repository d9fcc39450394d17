"""Background answers and chains: cancelled, deleted, left, read by others: each costs what it made."""

import asyncio
import json
import time

import pytest
from billing_provider import PROMPT

ASK = {"input": "hello there", "max_output_tokens": 50, "background": True}
RESPONSES = "/v1/responses"


def slow(count=30, pause_s=0.07, *, stops, before_s=0.0):
    async def script(call):
        call.bill.input = PROMPT
        if call.body.get("stream"):
            call.head()
            call.wrote.set()
            await asyncio.sleep(before_s)
            await call.words(count, pause_s, stops=stops)
            if stops and call.gone.is_set():
                return
            call.end()
            return
        call.wrote.set()
        for _ in range(count):
            if stops and call.gone.is_set():
                return
            await asyncio.sleep(pause_s)
            call.bill.output += 1
        message = {"role": "assistant", "content": "word " * count}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        call.answer(
            {
                "id": "c1",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [choice],
                "usage": call.usage(),
            }
        )

    return script


def show(hostile, team):
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


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("how", ["cancel", "delete", "both", "other"])
@pytest.mark.parametrize("model", ["first", "stopping"])
def test_a_background_answer_that_is_ended(hostile, model, how, stream) -> None:
    stack, team = hostile.stack, f"b-{model}-{how}-{stream}"
    token = hostile.token(team)
    hostile.play(model, slow(stops=model == "stopping"))
    before = len(hostile.provider.calls)
    if stream:
        from test_native_help import raw

        connection = raw(stack, {**ASK, "model": model, "stream": True}, RESPONSES, token)
        data = connection.recv(65536)
        while b"resp_" not in data:
            data += connection.recv(65536)
        name = "resp_" + data.split(b"resp_")[1].split(b'"')[0].decode()
    else:
        answer = stack.post(RESPONSES, {**ASK, "model": model}, token)
        assert answer.status_code == 200, answer.text
        name = answer.json()["id"]
    call = hostile.patiently(lambda: hostile.provider.calls[before:] or None)[0]
    assert call.wrote.wait(10)
    path = f"{RESPONSES}/{name}"
    headers = stack.headers(token)
    if how in ("cancel", "both"):
        got = stack.client.post(stack.url + path + "/cancel", headers=headers)
        assert got.status_code == 200, got.text
    if how in ("delete", "both"):
        got = stack.client.delete(stack.url + path, headers=headers)
        print(got.status_code, got.text[:100])
    if how == "other":
        other = stack.headers(hostile.token("stranger"))
        assert stack.client.get(stack.url + path, headers=other).status_code == 404
        assert stack.client.post(stack.url + path + "/cancel", headers=other).status_code == 404
        assert stack.client.delete(stack.url + path, headers=other).status_code == 404
    if stream:
        connection.close()
    show(hostile, team)
    rows = hostile.judge(team)
    assert len(rows) == 1
    found = stack.client.get(stack.url + path, headers=headers)
    print(found.status_code, found.text[:200])
