"""Bodies, and noticing that the client has gone."""

import asyncio

import pytest

from backends.simulator import asgi


def channel(*messages):
    queue = asyncio.Queue()
    for message in messages:
        queue.put_nowait(message)
    return queue.get


async def test_a_body_comes_in_parts():
    receive = channel(
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "body": b"c"},
    )
    assert await asgi.read_body(receive) == b"abc"


async def test_a_client_that_leaves_while_sending():
    with pytest.raises(asgi.GoneError):
        await asgi.read_body(channel({"type": "http.disconnect"}))


async def test_a_watch_wakes_for_work_and_for_hang_ups():
    queue = asyncio.Queue()
    watch = asgi.DisconnectWatch(queue.get)
    watch.wake()
    await watch.wait()
    assert not watch.gone
    await watch.wait(0.001)
    queue.put_nowait({"type": "http.disconnect"})
    await watch.wait()
    assert watch.gone
    watch.close()


async def test_answers_carry_the_label_and_their_length():
    sent = []

    async def send(message):
        sent.append(message)

    await asgi.reply_json(send, 418, {"a": 1}, (b"x-more", b"1"))
    headers = dict(sent[0]["headers"])
    assert sent[0]["status"] == 418
    assert headers[b"x-simulated"] == b"breakeven-simulator"
    assert headers[b"content-length"] == b"7"
    assert sent[1]["body"] == b'{"a":1}'


def test_headers_are_found_by_name():
    scope = {"headers": [(b"x-request-id", b"r1")]}
    assert asgi.header(scope, b"x-request-id") == "r1"
    assert asgi.header(scope, b"other") == ""


async def test_who_is_not_listened_to_never_leaves():
    watch = asgi.DisconnectWatch(asgi.hear_nothing)
    await watch.wait(0.001)
    assert not watch.gone
    watch.close()
