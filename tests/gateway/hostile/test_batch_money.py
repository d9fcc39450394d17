"""Batches of hostile teams: cancelled half way, past a budget that ends while they run."""

import asyncio
import json

import pytest
from billing_provider import PROMPT, honest
from test_chains import show

CHAT = "/v1/chat/completions"
ENDED = ("completed", "failed", "expired", "cancelled")


def make(hostile, token, model, count, **members):
    stack = hostile.stack
    body = {
        "model": model,
        "max_tokens": 50,
        "messages": [{"role": "user", "content": "hi"}],
        **members,
    }
    lines = b"".join(
        json.dumps({"custom_id": f"c{n}", "method": "POST", "url": CHAT, "body": body}).encode()
        + b"\n"
        for n in range(count)
    )
    file = stack.client.post(
        stack.url + "/v1/files",
        files={"file": ("in.jsonl", lines)},
        data={"purpose": "batch"},
        headers=stack.headers(token),
    ).json()
    answer = stack.post(
        "/v1/batches",
        {"input_file_id": file["id"], "endpoint": CHAT, "completion_window": "24h"},
        token,
    )
    assert answer.status_code == 200, answer.text
    return answer.json()["id"]


def found(hostile, token, name):
    return hostile.stack.get(f"/v1/batches/{name}", token).json()


async def slowly(call):
    await asyncio.sleep(0.05)
    await honest(call)


@pytest.mark.parametrize("model", ["first", "stopping"])
def test_a_batch_past_its_budget(hostile, runner, model) -> None:
    team = "tight0" if model == "first" else "tight1"
    token = hostile.token(team)
    hostile.play(model, *[slowly] * 100)
    name = make(hostile, token, model, 40)
    got = hostile.patiently(lambda: (g := found(hostile, token, name))["status"] in ENDED and g, 30)
    print(got["status"], got["request_counts"])
    rows = hostile.judge(team, 0.005)
    print(len(rows), sum(r["cost_pusd"] for r in rows) / 1e12, {r["status"] for r in rows})
    # nobody refused falsely: what is left has no room for a line's bound
    assert 0.005e12 - sum(r["cost_pusd"] for r in rows) < max(r["bound_pusd"] for r in rows)
    assert got["request_counts"]["completed"] == len(rows)


@pytest.mark.parametrize("model", ["first", "stopping"])
def test_a_batch_that_is_cancelled_half_way(hostile, runner, model) -> None:
    team = f"bcancel-{model}"
    token = hostile.token(team)

    async def very(call):
        await asyncio.sleep(0.3)
        await honest(call)

    hostile.play(model, *[very] * 300)
    name = make(hostile, token, model, 150)
    hostile.patiently(lambda: found(hostile, token, name)["request_counts"]["completed"] >= 5, 30)
    hostile.stack.post(f"/v1/batches/{name}/cancel", {}, token)
    got = hostile.patiently(lambda: (g := found(hostile, token, name))["status"] in ENDED and g, 30)
    rows = hostile.judge(team)
    print(
        got["status"],
        got["request_counts"],
        len(rows),
        len(hostile.sent(team)),
        {(r["status"], r["flag"]) for r in rows},
    )
