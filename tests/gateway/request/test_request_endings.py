"""What a client is told whose request ends without an answer."""

from typing import Any

import pytest

from gateway.errors import RequestError
from gateway.request.client_response import CLIENT_GONE
from gateway.request.request_endings import refuse, send_ending, waits_to_send


class Reply:
    """Takes what would be sent."""

    def __init__(self, *, started: bool = False, ended_by: str | None = None) -> None:
        self.started, self.ended_by = started, ended_by
        self.finished, self.sending_since = False, None
        self.sent: list[tuple[Any, ...]] = []

    async def send_whole(self, status: int, headers: list, data: bytes) -> None:
        self.sent.append((status, dict(headers), data))

    async def tell_broken(self, event: bytes) -> None:
        self.sent.append((event,))


class Line:
    def __init__(self) -> None:
        self.aborted = 0

    def abort(self) -> None:
        self.aborted += 1


@pytest.mark.parametrize(
    ("error", "last", "expected"),
    [
        (RequestError("no_key", "x"), False, {b"www-authenticate": b"Bearer"}),
        (RequestError("method", "x"), False, {b"allow": b"POST"}),
        (RequestError("overloaded", "x", retry_after_s=0.2), False, {b"retry-after": b"1"}),
        (RequestError("slow_client", "x"), False, {b"connection": b"close"}),
        (RequestError("bad_request", "x"), True, {b"connection": b"close"}),
        (RequestError("bad_request", "x"), False, {}),
    ],
)
async def test_a_refusal_says_what_to_do(error: RequestError, last: bool, expected: dict) -> None:
    reply = Reply()
    await refuse(reply, error, last=last)
    ((status, headers, _),) = reply.sent
    assert status == error.row.status
    told = (b"www-authenticate", b"allow", b"retry-after", b"connection")
    assert {name: headers[name] for name in told if name in headers} == expected


async def test_an_answer_that_has_begun_is_not_refused() -> None:
    reply = Reply(started=True)
    await refuse(reply, RequestError("internal", "x"))
    assert reply.sent == []


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(ended_by=CLIENT_GONE), 0),
        (Reply(ended_by="drain"), 1),
        (Reply(ended_by="total", started=True), 1),
    ],
)
async def test_who_still_reads_is_told_why_it_ends(reply: Reply, told: int) -> None:
    line = Line()
    await send_ending(reply, line, 1.0)
    assert (len(reply.sent), line.aborted) == (told, 0)


async def test_a_client_that_takes_nothing_is_cut_off() -> None:
    reply, line = Reply(ended_by="client_stall", started=True), Line()
    reply.sending_since = 5.0
    await send_ending(reply, line, 1.0)
    assert (reply.sent, line.aborted) == ([], 1)


def test_a_body_that_is_held_back_is_seen_by_its_head() -> None:
    assert waits_to_send({"headers": [(b"expect", b"100-continue")]})
    assert not waits_to_send({"headers": [(b"host", b"x")]})
