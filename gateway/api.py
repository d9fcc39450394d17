"""The hot paths as raw ASGI: accept, authenticate, read, dispatch, and answer every failure.

In front of FastAPI's routing and middleware, because per-request machinery there costs more than
everything else a request needs. The client's hang-up is listened for from the last byte of its
body on (also while the target is silent) and ends the request's task; a sweeper ends stalled
clients and overlong requests.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any

from gateway.auth import INFERENCE, authenticate, token_of
from gateway.body import Members, encode, open_members
from gateway.clock import Clock
from gateway.dialects.reply import TranslatedReply
from gateway.dialects.spoken import SPOKEN
from gateway.dispatch import CLIENT_GONE, Dispatcher
from gateway.errors import RequestError
from gateway.errors import body as error_body
from gateway.intake import PATHS, read
from gateway.metrics import Metrics
from gateway.protocol import abort_of, has_arrived, listener_of, push_of
from gateway.relay import error_event
from gateway.reply import JSON, Header, Reply
from gateway.settings import Server
from ledger.identity import Identity, KeyRing

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
SendMessage = Callable[[Message], Awaitable[None]]

SWEEP_S = 0.5
SESSION_HEADERS = (b"x-session-id", b"x-breakeven-session")
HOT = frozenset((*PATHS, *SPOKEN))
ESTIMATED: Header = (b"x-breakeven-tokens", b"estimated")

_ENDINGS = {
    "total": ("timeout", "The request took too long."),
    "drain": ("unavailable", "The gateway is restarting."),
}
_BODY_UNREAD = (408, 413)  # what follows on the connection is no request

log = logging.getLogger("breakeven.api")


class HotApi:
    """Serves `HOT`; one per worker."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        keys: KeyRing,
        metrics: Metrics,
        server: Server,
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        self._dispatcher = dispatcher
        self._keys = keys
        self._metrics = metrics
        self._server = server
        self._clock = clock
        self.new_id = new_id
        self._open: set[Reply] = set()
        self.draining = False

    @property
    def in_flight(self) -> int:
        return len(self._open)

    async def __call__(self, scope: Message, receive: Receive, send: SendMessage) -> None:
        task = asyncio.current_task()
        assert task is not None
        dialect, new_id, now_s = SPOKEN.get(scope["path"]), self.new_id, self._clock.now_s
        if dialect is None:
            push = push_of(scope)
            reply = Reply(send, request_id=new_id(), clock=now_s, task=task, push=push)
        else:
            reply = TranslatedReply(dialect, send, request_id=new_id(), clock=now_s, task=task)
        self._open.add(reply)
        self._metrics.working = len(self._open)
        unwatch: Callable[[], object] | None = None
        try:
            self._admit(scope["method"])
            identity = await authenticate(
                self._keys,
                token_of(scope["headers"]),
                now_us=self._clock.wall_us(),
                scope=INFERENCE,
            )
            text = await self._body(scope, receive)
            unwatch = _watched(scope, receive, reply)
            members = open_members(text)
            if isinstance(reply, TranslatedReply):
                await self._translated(scope, members, identity, reply)
            else:
                max_n, session = self._server.max_n, _session(scope["headers"])
                asked = read(scope["path"], members, max_n=max_n, session=session)
                await self._dispatcher.dispatch(asked, identity, reply)
        except RequestError as error:
            await refuse(reply, error)
        except asyncio.CancelledError:
            if reply.ended_by is None:
                if not self.draining:
                    raise
                reply.ended_by = "drain"
            task.uncancel()
            await _ended(reply, abort_of(scope))
        except Exception:  # the outermost handler: one defect must not take the worker along
            log.exception("request %s failed", reply.request_id)
            if not reply.started:
                await refuse(reply, RequestError("internal", "The gateway failed; it is logged."))
        finally:
            if unwatch is not None:
                unwatch()
            self._open.discard(reply)
            self._metrics.working = len(self._open)

    async def sweep(self) -> None:
        """Run for ever: end what stalls or lasts too long."""
        limits = self._server.timeouts
        while True:
            await asyncio.sleep(SWEEP_S)
            now = self._clock.now_s()
            for reply in tuple(self._open):
                since = reply.sending_since
                if since is not None and now - since > limits.client_stall_s:
                    reply.end("client_stall")
                elif now - reply.opened_s > limits.total_s:
                    reply.end("total")

    async def _translated(
        self, scope: Message, members: Members, identity: Identity, reply: TranslatedReply
    ) -> None:
        """The same for a request in another dialect, or the number of its tokens."""
        asked = reply.hear(
            members,
            max_n=self._server.max_n,
            session=_session(scope["headers"]),
            wall_s=self._clock.wall_us() // 1_000_000,
        )
        if reply.counts:
            counted = self._dispatcher.planner.prompt_tokens(asked, identity)
            await reply.whole(200, [JSON, ESTIMATED], encode({"input_tokens": counted}))
        else:
            await self._dispatcher.dispatch(asked, identity, reply)

    def _admit(self, method: str) -> None:
        if method != "POST":
            raise RequestError("method", f"{method} is not supported here; use POST.")
        if len(self._open) > self._server.max_in_flight:
            raise RequestError("overloaded", "Too many requests are open here.", retry_after_s=1.0)

    async def _body(self, scope: Message, receive: Receive) -> bytes:
        """The whole body within the size limit and the receive deadline."""
        limit = self._server.body_limit_bytes
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > limit:
                raise _too_large(limit)
            if name == b"content-type" and b"json" not in value.lower():
                raise RequestError("media_type", "Send the body as `application/json`.")
        try:
            if has_arrived(scope):  # the usual case: nothing to wait for needs no deadline
                text = await _joined(await receive(), receive, limit)
            else:
                async with asyncio.timeout(self._server.timeouts.receive_s):
                    text = await _joined(await receive(), receive, limit)
        except TimeoutError as error:
            raise RequestError("slow_client", "The request body did not arrive in time.") from error
        if len(text) > limit:
            raise _too_large(limit)
        return text


async def _joined(message: Message, receive: Receive, limit: int) -> bytes:
    if message["type"] == "http.request" and not message.get("more_body", False):
        whole: bytes = message.get("body", b"")
        return whole
    parts: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise RequestError("bad_request", "The client hung up before its body was complete.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()


def _watched(scope: Message, receive: Receive, reply: Reply) -> Callable[[], object]:
    """From here on a hang-up ends the request; returns what ends the watching."""
    listen = listener_of(scope)
    if listen is None:
        return asyncio.create_task(_watch(receive, reply)).cancel
    return listen(partial(reply.end, CLIENT_GONE))


async def _watch(receive: Receive, reply: Reply) -> None:
    """End the request when its client goes, in whatever it is doing."""
    while (await receive())["type"] != "http.disconnect":
        pass
    reply.end(CLIENT_GONE)


async def _ended(reply: Reply, abort: Callable[[], None]) -> None:
    """Nobody reads on after a hang-up or a stall; whoever still reads is told why it ends."""
    if reply.ended_by == CLIENT_GONE or reply.finished:
        return
    kind, why = _ENDINGS.get(reply.ended_by or "", _ENDINGS["total"])
    error = RequestError(kind, why, retry_after_s=1.0)
    if not reply.started:
        await refuse(reply, error)
    elif reply.sending_since is None:
        await reply.body(error_event(why, error.row.type, error.row.code), more=False)
    else:
        abort()  # closing would wait for a client that takes nothing


async def refuse(reply: Reply, error: RequestError) -> None:
    """Answer with the OpenAI error body, unless the answer has begun."""
    if reply.started:
        return
    headers: list[Header] = [JSON]
    if error.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, round(error.retry_after_s))).encode()))
    if error.retry is not None:
        headers.append((b"x-should-retry", b"true" if error.retry else b"false"))
    if error.row.status == 405:
        headers.append((b"allow", b"POST"))
    if error.row.status in _BODY_UNREAD:
        headers.append((b"connection", b"close"))
    await reply.whole(error.row.status, headers, error_body(error))


def _session(headers: list[tuple[bytes, bytes]]) -> str | None:
    for name, value in headers:
        if name in SESSION_HEADERS:
            return value.decode("latin-1")[:256]
    return None


def _too_large(limit: int) -> RequestError:
    return RequestError("too_large", f"The body is larger than {limit} bytes.")


def is_hot(scope: Message) -> bool:
    return scope["type"] == "http" and scope["path"] in HOT
