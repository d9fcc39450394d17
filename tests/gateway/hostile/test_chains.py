"""Chains, sockets and idempotency keys under hostile clients."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from billing_provider import PROMPT, honest
from test_native_help import raw
from websockets.sync.client import connect

RESPONSES = "/v1/responses"
CHAT = {
    "model": "first",
    "messages": [{"role": "user", "content": "hello there"}],
    "max_tokens": 20,
}


async def counts(call):
    """An honest provider that counts a token for 4 bytes of the prompt."""
    call.bill.input = sum(len(json.dumps(m)) for m in call.body["messages"]) // 4
    call.bill.output = 20
    message = {"role": "assistant", "content": "word " * 20}
    if call.body.get("stream"):
        call.head()
        call.bill.output = 0
        await call.words(20)
        call.end()
        return
    call.answer(
        {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": call.usage(),
        }
    )


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


def test_a_chain_holds_its_whole_prompt(hostile) -> None:
    stack, team = hostile.stack, "chain"
    token = hostile.token(team)
    hostile.play("first", *[counts] * 20)
    previous = None
    for number in range(4):
        body = {
            "model": "first",
            "input": "x" * 4000,
            "max_output_tokens": 20,
            "previous_response_id": previous,
        }
        answer = stack.post(RESPONSES, body, token)
        assert answer.status_code == 200, answer.text
        previous = answer.json()["id"]
    show(hostile, team)
    hostile.judge(team)
    other = stack.post(
        RESPONSES,
        {"model": "first", "input": "a", "previous_response_id": previous},
        hostile.token("stranger"),
    )
    assert other.status_code == 404
    # compaction and count
    answer = stack.post(
        RESPONSES + "/compact", {"model": "first", "previous_response_id": previous}, token
    )
    print(answer.status_code, answer.text[:300])
    answer = stack.post(
        RESPONSES + "/input_tokens", {"model": "first", "previous_response_id": previous}, token
    )
    print(answer.status_code, answer.text[:300])
    show(hostile, team)
    hostile.judge(team)


def test_deletion_races_the_next_turn(hostile) -> None:
    stack, team = hostile.stack, "race"
    token = hostile.token(team)
    hostile.play("first", *[counts] * 40)
    for _ in range(5):
        first = stack.post(
            RESPONSES, {"model": "first", "input": "x" * 400, "max_output_tokens": 20}, token
        ).json()["id"]
        with ThreadPoolExecutor(2) as pool:
            a = pool.submit(
                stack.client.delete, f"{stack.url}{RESPONSES}/{first}", headers=stack.headers(token)
            )
            b = pool.submit(
                stack.post,
                RESPONSES,
                {
                    "model": "first",
                    "input": "x",
                    "max_output_tokens": 20,
                    "previous_response_id": first,
                },
                token,
            )
            print(a.result().status_code, b.result().status_code)
    hostile.judge(team)


def test_a_socket(hostile) -> None:
    stack, team = hostile.stack, "socket"
    token = hostile.token(team)
    hostile.play("first", *[counts] * 40)
    url = f"ws://127.0.0.1:{stack.port}{RESPONSES}"
    with connect(
        url, additional_headers={"authorization": f"Bearer {token}"}, proxy=None
    ) as socket:
        ask = {"type": "response.create", "model": "first", "store": False, "max_output_tokens": 20}

        def turn(**more):
            socket.send(json.dumps({**ask, **more}))
            while True:
                event = json.loads(socket.recv(20))
                if event["type"] in (
                    "response.completed",
                    "response.failed",
                    "response.incomplete",
                    "error",
                ):
                    return event

        warm = turn(generate=False, input="y" * 8000)
        print(str(warm)[:200])
        warm_id = warm["response"]["id"]
        assert not hostile.quiet_rows(team)
        second = turn(input="on", previous_response_id=warm_id)
        show(hostile, team)
        third = turn(input="on", previous_response_id=second["response"]["id"])
        show(hostile, team)
        hostile.judge(team)
        # several at once, then drop in the middle
        for _ in range(5):
            socket.send(json.dumps({**ask, "input": "go"}))
        json.loads(socket.recv(20))
    show(hostile, team)
    hostile.judge(team)


@pytest.mark.parametrize("stream", [False, True])
def test_idempotency(hostile, stream) -> None:
    stack, team = hostile.stack, f"idem-{stream}"
    token = hostile.token(team)
    body = {**CHAT, "stream": stream}

    def post(key, body, token=token):
        return stack.post("/v1/chat/completions", body, token, **{"idempotency-key": key})

    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(post, "a", body) for _ in range(8)]
        codes = sorted(answer.result().status_code for answer in answers)
    print(codes)
    assert len(hostile.sent(team)) == 1
    assert post("a", {**body, "max_tokens": 19}).status_code == 422
    # across teams the same key is somebody else's
    other = f"idem2-{stream}"
    got = post("a", body, hostile.token(other))
    assert got.status_code == 200
    hostile.judge(other)

    # after a failure that was charged
    async def breaks(call):
        call.bill.input, call.bill.output = PROMPT, 20
        call.head(200, "application/json", content_length="5000")
        call.send("{")
        await call.drop()

    hostile.play("first", breaks, breaks, breaks)
    failed = post("b", {**CHAT})
    again = post("b", {**CHAT})
    print(failed.status_code, again.status_code, again.text[:200])

    async def filtered(call):
        call.bill.input = PROMPT
        call.answer({"error": {"message": "filtered", "code": "content_filter"}}, 400)

    hostile.play("first", filtered, filtered)
    failed = post("c", {**CHAT})
    again = post("c", {**CHAT})
    print(failed.status_code, again.status_code, again.text[:200])
    show(hostile, team)
    hostile.judge(team)
