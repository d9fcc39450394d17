"""Prompts of which nothing was told, as their client left or their target broke off."""

import asyncio
import base64
import json

import pytest
from test_chains import show
from test_media_retries import sound
from test_native_help import raw

LONG = "word " * 4000


async def silent_then_stops(call):
    """Reads the prompt, writes it to its cache, and stops as its caller leaves."""
    size = sum(len(json.dumps(m)) for m in call.body["messages"])
    call.bill.other_pusd = size // 5 * 2_000_000
    call.wrote.set()
    await asyncio.wait_for(call.gone.wait(), 10)


async def silent_then_drops(call):
    size = sum(len(json.dumps(m)) for m in call.body["messages"])
    call.bill.other_pusd = size // 5 * 2_000_000
    call.head()
    call.event({"type": "ping"})
    await call.drop()


async def hears_then_stops(call):
    call.bill.other_pusd = 20 * 40_000_000  # two seconds
    call.head()
    call.chunk(content="word ")
    call.bill.output = 1
    call.wrote.set()
    await asyncio.wait_for(call.gone.wait(), 10)


async def hears_then_drops(call):
    call.bill.other_pusd = 20 * 40_000_000
    call.head()
    call.chunk(content="word ")
    call.bill.output = 1
    await call.drop()


def leave(hostile, team, path, body):
    before = len(hostile.provider.calls)
    connection = raw(hostile.stack, body, path, hostile.token(team))
    call = hostile.patiently(lambda: hostile.provider.calls[before:] or None)[0]
    assert call.wrote.wait(10)
    connection.close()


@pytest.mark.parametrize("how", ["leave", "drop"])
def test_marks(hostile, how) -> None:
    team = f"u-{how}"
    mark = {"type": "ephemeral", "ttl": "1h"}
    body = {
        "model": "claudestops",
        "max_tokens": 50,
        "stream": True,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": LONG, "cache_control": mark}]}
        ],
    }
    if how == "leave":
        hostile.play("claudestops", silent_then_stops)
        leave(hostile, team, "/v1/messages", body)
    else:
        hostile.play("claudestops", silent_then_drops)
        hostile.stack.post("/v1/messages", body, hostile.token(team))
    show(hostile, team)
    hostile.judge(team)


@pytest.mark.parametrize("how", ["leave", "drop"])
def test_sound(hostile, how) -> None:
    team = f"s-{how}"
    part = {
        "type": "input_audio",
        "input_audio": {"data": base64.b64encode(sound()).decode(), "format": "wav"},
    }
    body = {
        "model": "stophears",
        "max_tokens": 50,
        "stream": True,
        "messages": [{"role": "user", "content": [part]}],
    }
    if how == "leave":
        hostile.play("stopping", hears_then_stops)
        leave(hostile, team, "/v1/chat/completions", body)
    else:
        hostile.play("stopping", hears_then_drops)
        answer = hostile.stack.post("/v1/chat/completions", body, hostile.token(team))
        print(answer.status_code, answer.text[-300:])
    show(hostile, team)
    hostile.judge(team)
