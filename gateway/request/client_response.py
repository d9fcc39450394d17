"""One HTTP answer as the server sees it: what was sent, and what ended the request.

`start` happens once; after it an error can only be sent as an event of the stream. A sweeper in
`gateway.request.inference_api` uses `is_stalled` and `opened_s` to end stalled and overlong
requests.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Protocol

from gateway.http.connection import Header, RequestConnection
from gateway.kinds.inference_request import InferenceRequest
from gateway.request.attempt import Attempt
from gateway.request.cache.cache_use import CacheUse
from gateway.request.limits.rate_limiter import RateLimitUse
from gateway.request.trace_observer import RequestTrace
from ledger.journals.records import TokenCounts
from router.types import Residency

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON: Header = (b"content-type", b"application/json")
STREAM: Header = (b"content-type", b"text/event-stream; charset=utf-8")
NO_CACHE: Header = (b"cache-control", b"no-cache")
STREAM_HEAD = (STREAM, NO_CACHE)
KEEP_ALIVE_S = 4.0  # of silence; with the sweeper's interval no client waits 5 s for a byte
CLIENT_GONE = "client_gone"
CANCELLED = "cancelled"  # a background response, by its client
BY_CLIENT = frozenset((CLIENT_GONE, CANCELLED))  # any other reason is the gateway's


class TargetChoice(Protocol):
    """The choice of a target, as stored answers need it; implemented by `RoutingPlan`."""

    @property
    def residency(self) -> Residency: ...


class ClientResponse:
    """One HTTP answer. Cancelling `task`, the request's task, ends the request everywhere.

    After `wrap_send`, `charged` says that a target may charge for a failed attempt, and `broken`
    that the answer had begun and ends with an error. `use` is what the request took of its rate
    limits.
    """

    ping = b": keep-alive\n\n"  # keep-alive comment of a silent stream

    __slots__ = (
        "_clock",
        "_connection",
        "_left",
        "_line",
        "_noticed",
        "_pinging",
        "_quiet_since_s",
        "_send",
        "attempt",
        "broken",
        "cache_use",
        "charged",
        "choice",
        "ended_by",
        "finished",
        "is_file",
        "keeps",
        "keeps_alive",
        "on_leave",
        "on_masked",
        "opened_early",
        "opened_s",
        "request_id",
        "sending_since",
        "sent",
        "started",
        "status",
        "story",
        "task",
        "total_s",
        "use",
    )  # fmt: skip

    def __init__(
        self,
        send: Send,
        *,
        request_id: str,
        clock: Callable[[], float],
        task: asyncio.Task[Any],
        connection: RequestConnection | None = None,
    ) -> None:
        self._send = send
        self._connection = self._line = connection
        self._left: int | None = None  # bytes that the client had not taken at the last check
        self._clock = clock
        self.task = task
        self.request_id = request_id
        self.opened_s = clock()
        self.sending_since: float | None = None
        self.started = False
        self.finished = False
        self.is_file = False  # a sound file, which has no form for an error
        self.keeps_alive = False  # whether the client waits for a stream
        self.opened_early = False  # whether the head was sent before the answer began
        self.sent = self._noticed = 0  # parts sent, and the number at the last check
        self._quiet_since_s = self.opened_s
        self._pinging: asyncio.Task[None] | None = None
        self.use: RateLimitUse | None = None
        self.total_s: float | None = None  # total time of the model, if stated
        self.status: int | None = None  # as sent
        self.attempt: Attempt | None = None  # the attempt that answers, or the last one
        self.cache_use: CacheUse | None = None  # use of the response cache
        self.on_masked: Callable[[InferenceRequest], None] | None = None  # set by the keeper
        self.story: RequestTrace | None = None  # trace, if the request is observed
        self.ended_by: str | None = None  # of `BY_CLIENT`, "client_stall", "total", "drain"
        self.choice: TargetChoice | None = None  # how the target of a whole answer was chosen
        self.on_leave: Callable[[], bool] | None = None  # whether the task goes on without it
        self.keeps: Callable[[int], bool] | None = None  # whether so many bytes are kept then

    def end(self, why: str) -> None:
        """End the request from outside its task, unless it is finished; the first reason stands.

        If a target goes on without the client, its answer is read to the end and nothing more is
        sent.
        """
        if self.ended_by is None and not self.finished:
            self.ended_by = why
            if why not in BY_CLIENT or self.on_leave is None or not self.on_leave():
                self.task.cancel()

    def is_stalled(self, now_s: float, limit_s: float) -> bool:
        """Return whether the client has taken no byte for `limit_s`.

        The sweeper calls it more often than that. A picture of some MiB is sent in one piece; on a
        slow line that takes longer than the limit.
        """
        if self.sending_since is None:
            return False
        before, self._left = self._left, 0 if self._line is None else self._line.unsent()
        if before is not None and self._left < before:
            self.sending_since = now_s
        return now_s - self.sending_since > limit_s

    def note_charge(self, *, billable: bool) -> None:
        """Note that a target may charge for an attempt that failed."""
        if billable:
            self.charged = True

    def wrap_send(self, wrap: Callable[[Send], Send]) -> None:
        """Send all further messages through the callable that `wrap` makes."""
        self._send, self._connection = wrap(self._send), None
        self.broken = self.charged = False

    def keep_allowed(self, asked: InferenceRequest, *, masked: bool) -> None:
        """Store the request as detectors and guardrails allow, if the response is stored at all.

        `masked`: the request differs from what the client sent. Raises `RequestError` as
        `forbid_storing`.
        """
        if masked and self.on_masked is not None:
            self.on_masked(asked)

    def forbid_storing(self) -> None:
        """Store nothing of the answer; responses with a store override this and report it.

        Raises `RequestError` where the client can only get the answer from the store.
        """

    def detach(self) -> None:
        """Allow no more sends, and drop the wrapped send, which refers back to this response."""
        self._send = _over
        if self.use is not None:
            self.use.end()
        if self.story is not None:
            self.story.on_ended(self.status, self.ended_by)

    def keep_alive(self, now_s: float) -> None:
        """Send a keep-alive comment if the stream was silent for `KEEP_ALIVE_S`.

        The sweeper calls it more often than that. The head may be sent with it; the answer has not
        begun then, and another target may still answer.
        """
        if self.sent != self._noticed:
            self._noticed, self._quiet_since_s = self.sent, now_s
        elif now_s - self._quiet_since_s >= KEEP_ALIVE_S and self.sending_since is None:
            self._quiet_since_s = now_s
            if self.ended_by is None and not self.finished:
                self._pinging = asyncio.create_task(self._ping(self._send))

    async def _ping(self, send: Send) -> None:
        if not (self.started or self.opened_early):
            self.opened_early = True
            head = self._with_own_headers([*STREAM_HEAD, *self.early_headers()])
            await send({"type": "http.response.start", "status": 200, "headers": head})
        if not self.finished:
            await send({"type": "http.response.body", "body": self.ping, "more_body": True})

    def early_headers(self) -> Sequence[Header]:
        """Return the extra headers of a stream whose head is sent before its answer begins."""
        return ()

    async def start(self, status: int, headers: Sequence[Header]) -> None:
        self.started, self.status = True, status
        if self.opened_early:
            return
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": self._with_own_headers(headers),
            }
        )

    def push(self, part: bytes) -> bytes:
        """Send a part of a begun answer if nothing must be awaited; return what is left.

        `body` sends the rest. Each thousand parts a second that need no task save a hundredth of a
        core.
        """
        connection = self._connection
        if self.started and connection is not None and connection.push(part):
            self.sent += 1
            return b""
        return part

    async def body(self, data: bytes, *, more: bool) -> None:
        """Send, and wait while the client's buffer is full, so that memory stays bounded."""
        self.sending_since, self._left = self._clock(), None
        self.sent += 1
        self.finished = not more  # the server reports a disconnect after a complete answer
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
        self.sending_since = None

    async def tell_broken(self, event: bytes) -> None:
        """End a broken stream with an error event; cut off a file, so that it never seems whole."""
        if not self.is_file:
            await self.body(event, more=False)
            return
        self.finished = True
        if self._line is not None:
            self._line.abort()

    def set_usage(self, tokens: TokenCounts | None, choice: TargetChoice) -> None:
        """Set the answer's choice before its end is sent; translated answers report usage."""
        del tokens
        self.choice = choice

    @property
    def is_remembered(self) -> bool:
        """Return whether the client can continue from this answer, or it starts no conversation."""
        return False

    @property
    def residency(self) -> Residency:
        """Return the tightest residency by which the answer's target was chosen."""
        return Residency.ANY if self.choice is None else self.choice.residency

    async def send_whole(self, status: int, headers: Sequence[Header], data: bytes) -> None:
        if self.opened_early:
            self.started = self.broken = True
            await self.body(b"data: %b\n\n" % data, more=False)
            return
        if self._connection is not None and self._connection.answer(
            status, self._with_own_headers(headers), data
        ):
            self.started = self.finished = True
            self.status = status
            return
        await self.start(status, [*headers, (b"content-length", str(len(data)).encode())])
        await self.body(data, more=False)

    def _with_own_headers(self, headers: Sequence[Header]) -> list[Header]:
        named = (b"x-request-id", self.request_id.encode())
        return [named, *headers] if self.use is None else [named, *headers, *self.use.headers]

    async def send_again(self, headers: Sequence[Header], data: bytes, *, whole: bool) -> None:
        """Send a cached answer to an equal request, already encoded in this dialect."""
        self.started, self.status = True, 200
        told = self._with_own_headers(headers)
        if whole and self._connection is not None and self._connection.answer(200, told, data):
            self.finished = True
            return
        if whole:
            told.append((b"content-length", str(len(data)).encode()))
        await self._send({"type": "http.response.start", "status": 200, "headers": told})
        await ClientResponse.body(self, data, more=False)

    async def replay(self, status: int, headers: Sequence[Header], data: bytes) -> None:
        """Send another request's stored answer unchanged, with that request's id."""
        self.started, self.status = True, status
        start = {"type": "http.response.start", "status": status, "headers": list(headers)}
        await self._send(start)
        await ClientResponse.body(self, data, more=False)


async def _over(_: MutableMapping[str, Any]) -> None:
    raise RuntimeError("sent after its request had ended")
