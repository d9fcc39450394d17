"""One answer: started once, ended once, and what the sweeper reads of it."""

import asyncio
from types import SimpleNamespace

import pytest

from gateway.request.client_response import JSON, ClientResponse


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
