"""One answer: started once, ended once, and what the sweeper reads of it."""

import asyncio
from types import SimpleNamespace

import pytest

from gateway.request.client_response import JSON, KEEP_ALIVE_S, ClientResponse


class Wire:
    def __init__(self) -> None:
        self.sent: list[dict] = []
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, message: dict) -> None:
        await self.open.wait()
        self.sent.append(message)


def reply_on(wire: Wire, task: asyncio.Task | None = None) -> ClientResponse:
    task = task or asyncio.current_task()
    assert task is not None
    return ClientResponse(wire, request_id="req_1", clock=lambda: 7.0, task=task)


async def test_a_whole_answer_names_its_request_and_length() -> None:
    wire = Wire()
    reply = reply_on(wire)
    await reply.send_whole(200, [JSON], b"{}")
    head, body = wire.sent
    assert head["headers"] == [
        (b"x-request-id", b"req_1"), (b"content-type", b"application/json"),
        (b"content-length", b"2"),
    ]  # fmt: skip
    assert (body["body"], body["more_body"]) == (b"{}", False)
    assert reply.started
    assert reply.finished
    assert reply.sending_since is None


async def test_while_the_client_takes_nothing_the_time_stands() -> None:
    wire = Wire()
    reply = reply_on(wire)
    await reply.start(200, [])
    wire.open.clear()
    sending = asyncio.create_task(reply.body(b"x", more=True))
    await asyncio.sleep(0)
    assert reply.sending_since == 7.0
    wire.open.set()
    await sending
    assert reply.sending_since is None
    assert not reply.finished


async def test_the_first_reason_ends_it_and_a_full_answer_stands() -> None:
    wire = Wire()

    async def request() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(request())
    await asyncio.sleep(0)
    reply = reply_on(wire, task)
    reply.end("client_gone")
    reply.end("total")
    assert reply.ended_by == "client_gone"
    with pytest.raises(asyncio.CancelledError):
        await task
    done = reply_on(wire)
    await done.send_whole(200, [], b"")
    done.end("client_gone")
    assert done.ended_by is None


async def test_a_part_is_pushed_once_the_answer_has_begun() -> None:
    pushed: list[bytes] = []
    wire, room = Wire(), True

    def push(part: bytes) -> bool:
        if room:
            pushed.append(part)
        return room

    task = asyncio.current_task()
    assert task is not None
    connection = SimpleNamespace(push=push)
    reply = ClientResponse(
        wire, request_id="req_1", clock=lambda: 7.0, task=task, connection=connection
    )
    assert reply.push(b"before the head") == b"before the head"
    await reply.start(200, [])
    assert reply.push(b"a") == b""
    room = False
    assert reply.push(b"b") == b"b"
    assert pushed == [b"a"]
    assert len(wire.sent) == 1


async def test_under_other_servers_every_part_is_for_the_task_to_send() -> None:
    reply = reply_on(Wire())
    await reply.start(200, [])
    assert reply.push(b"a") == b"a"


@pytest.mark.parametrize("taken", [True, False])
async def test_a_whole_answer_goes_in_one_piece_where_it_can(taken: bool) -> None:
    wire, given = Wire(), []

    def answer(*piece: object) -> bool:
        given.append(piece)
        return taken

    task = asyncio.current_task()
    assert task is not None
    reply = ClientResponse(
        wire, request_id="req_1", clock=lambda: 7.0, task=task,
        connection=SimpleNamespace(answer=answer, unsent=lambda: 0),
    )  # fmt: skip
    await reply.send_whole(200, [JSON], b"{}")
    assert given == [(200, [(b"x-request-id", b"req_1"), JSON], b"{}")]
    assert len(wire.sent) == (0 if taken else 2)
    assert reply.started
    assert reply.finished


async def test_who_takes_a_little_now_and_then_does_not_stall() -> None:
    """One part of an answer may be a picture of several MiB."""
    wire, now, line = Wire(), [7.0], SimpleNamespace(unsent=lambda: left[0])
    left = [900]
    task = asyncio.current_task()
    assert task is not None
    reply = ClientResponse(
        wire, request_id="req_1", clock=lambda: now[0], task=task, connection=line
    )  # type: ignore[arg-type]  # no more of a connection is asked for here
    assert not reply.is_stalled(99.0, 5.0)
    wire.open.clear()
    sending = asyncio.create_task(reply.body(b"x", more=True))
    await asyncio.sleep(0)
    for now_s, kept, stalls in ((11, 900, False), (12, 800, False), (17, 800, False),
                                (18, 800, True), (19, 700, False), (24, 700, False)):  # fmt: skip
        left[0] = kept
        assert reply.is_stalled(float(now_s), 5.0) is stalls, now_s
    wire.open.set()
    await sending


@pytest.mark.parametrize(
    ("why", "goes_on", "cancelled"),
    [
        ("client_gone", True, False),
        ("client_gone", False, True),
        ("client_gone", None, True),
        ("total", True, True),
        ("client_stall", True, True),
    ],
)
async def test_a_task_outlives_its_client_only_where_it_is_let(why, goes_on, cancelled) -> None:
    task = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    reply = reply_on(Wire(), task)
    reply.on_leave = None if goes_on is None else lambda: goes_on
    reply.end(why)
    assert (reply.ended_by, bool(task.cancelling())) == (why, cancelled)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Silence:
    """A reply whose clock and looks a test makes."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.reply = reply_on(self.wire)
        self.reply.keeps_alive = True

    async def look(self, now_s: float) -> list[bytes]:
        """What left since the look before."""
        before = len(self.wire.sent)
        self.reply.keep_alive(now_s)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return [message.get("body", b"head") for message in self.wire.sent[before:]]


PING = b": keep-alive\n\n"


async def test_a_stream_that_says_nothing_gives_signs_of_life() -> None:
    silence = Silence()
    assert await silence.look(7.0 + KEEP_ALIVE_S - 0.1) == []
    assert await silence.look(7.0 + KEEP_ALIVE_S) == [b"head", PING]
    reply = silence.reply
    assert (reply.opened_early, reply.started) == (True, False), "another target may still answer"
    assert dict(silence.wire.sent[0]["headers"])[b"content-type"].startswith(b"text/event-stream")
    assert await silence.look(7.0 + KEEP_ALIVE_S + 1) == []
    assert await silence.look(7.0 + 2 * KEEP_ALIVE_S) == [PING]
    await reply.start(200, [(b"x", b"y")])
    await reply.body(b"data: 1\n\n", more=True)
    assert [message["type"] for message in silence.wire.sent].count("http.response.start") == 1
    assert await silence.look(20.0) == []
    assert await silence.look(20.0 + KEEP_ALIVE_S) == [PING], "also in mid-answer"
    await reply.body(b"", more=False)
    assert await silence.look(90.0) == []
    assert await silence.look(99.0) == []


async def test_what_reaches_nobody_is_no_sign_of_life() -> None:
    """A target's own signs of life, which a dialect has no form for, are pushed and not sent."""
    silence = Silence()
    silence.reply._connection = None
    for now_s in (8.0, 9.0, 10.0):
        assert silence.reply.push(b": ok\n\n") == b": ok\n\n"
        assert await silence.look(now_s) == []
    assert silence.reply.push(b": ok\n\n")
    assert await silence.look(8.0 + KEEP_ALIVE_S) == [b"head", PING]


async def test_a_client_that_takes_nothing_gets_no_more() -> None:
    silence = Silence()
    await silence.reply.start(200, [])
    silence.wire.open.clear()
    sending = asyncio.create_task(silence.reply.body(b"x", more=True))
    await asyncio.sleep(0)
    assert await silence.look(8.0) == []
    assert await silence.look(60.0) == []
    silence.wire.open.set()
    await sending
    assert [message.get("body") for message in silence.wire.sent] == [None, b"x"]


async def test_a_failure_behind_a_sign_of_life_is_an_event() -> None:
    silence = Silence()
    await silence.look(60.0)
    await silence.reply.send_whole(503, [JSON], b'{"error":{"message":"x"}}')
    last = silence.wire.sent[-1]
    assert (last["body"], last["more_body"]) == (b'data: {"error":{"message":"x"}}\n\n', False)
    assert silence.reply.finished
    assert silence.reply.broken


async def test_an_answer_that_begins_meanwhile_has_one_head() -> None:
    silence = Silence()
    silence.reply.keep_alive(60.0)
    await silence.reply.start(200, [])
    await silence.reply.body(b"data: 1\n\n", more=True)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [message.get("body") for message in silence.wire.sent] == [None, b"data: 1\n\n", PING]


@pytest.mark.parametrize("is_file", [False, True])
async def test_what_breaks_is_told_in_a_stream_and_cuts_a_file_off(is_file: bool) -> None:
    wire, aborted = Wire(), []
    line = SimpleNamespace(abort=lambda: aborted.append(True), unsent=lambda: 0)
    reply = reply_on(wire)
    reply._line, reply.is_file = line, is_file
    await reply.start(200, [])
    await reply.tell_broken(b"data: error")
    assert reply.finished
    assert [message.get("body") for message in wire.sent[1:]] == (
        [] if is_file else [b"data: error"]
    )
    assert aborted == ([True] if is_file else [])
