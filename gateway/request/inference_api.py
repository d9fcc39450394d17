"""Raw ASGI application of the paths that models answer: authenticate, read, dispatch.

It stands before FastAPI's routing and middleware, whose cost per request exceeds everything else
that a request needs. A disconnect is watched for once the body is read, also while the target is
silent, and ends the request's task. A sweeper ends stalled clients and overlong requests.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any, Protocol

from gateway.auth import INFERENCE, KeyLookup, authenticate, require_token
from gateway.clock import Clock, next_tick
from gateway.config.settings import ServerSection, TimeoutsSection
from gateway.errors import RequestError, drop_traceback
from gateway.http.body import decode_members, encode
from gateway.http.connection import Header, RequestConnection, connection_of
from gateway.http.fields import RequestHead, read_fields
from gateway.http.member_rules import MemberRules
from gateway.kinds import KIND_PATHS, KINDS
from gateway.kinds.chat import CHAT_PATH, JUDGED_MEMBERS
from gateway.kinds.inference_request import IncomingBody, InferenceRequest
from gateway.logs import REQUEST
from gateway.request.client_paths import DEPLOYMENT, with_model
from gateway.request.client_response import CLIENT_GONE, JSON, ClientResponse
from gateway.request.dialects.translated_paths import SPOKEN
from gateway.request.dialects.translated_response import TranslatedResponse
from gateway.request.dispatch import Dispatcher
from gateway.request.idempotency.idempotency_store import IdempotentRequest
from gateway.request.ignored_names import telling_ignored
from gateway.request.limits.rate_limiter import rate_error
from gateway.request.request_endings import refuse, send_ending, waits_to_send
from gateway.request.request_tags import with_request_tags
from gateway.request.store.background_responses import BackgroundResponses
from gateway.request.store.response_storage import NoStoredResponses, ResponseStorage
from gateway.request.target_count import count_at_target
from gateway.sound.sound_decoder import sounds_for
from ledger.identity.keys import Identity
from router.types import Feature

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
SendMessage = Callable[[Message], Awaitable[None]]

_FAILED = "The gateway failed. Report `x-request-id`: the cause is in its log."
LATE_CHECK_S = 0.5  # interval of checks for late answers
SLOWEST_BYTES_PER_S = 16 * 1024  # of a body; the request's total time is bounded, too
LARGE_BYTES = 256 * 1024  # reading more would delay streams
LARGE_SPOKEN_BYTES = 16 * 1024  # translating more would, too
HOT = frozenset((*KIND_PATHS, *SPOKEN))
_CHAT_READER = KIND_PATHS[CHAT_PATH]  # other dialects send JSON, too
_STORE = Feature.STORE  # a plain name: accessing an enum member costs ten times as much
STORAGE = "breakeven.storage"  # in the request's scope: storage of its connection
ESTIMATED: Header = (b"x-breakeven-tokens", b"estimated")
COUNTED: Header = (b"x-breakeven-tokens", b"counted")  # by the target in `x-breakeven-backend`
BACKEND = b"x-breakeven-backend"
COMPRESSED = "The body is compressed (`content-encoding`). Send it as it is."


log = logging.getLogger("breakeven.api")


class InFlightCounter(Protocol):
    """Counter of open requests; implemented by `gateway.telemetry.metrics.requests`."""

    working: int


class InferenceApi:
    """ASGI application of the paths in `HOT`; one per worker."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        keys: KeyLookup,
        metrics: InFlightCounter,
        server: ServerSection,
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        # Storage of answers that clients may continue; replaced if answers are stored.
        self.storage: ResponseStorage = NoStoredResponses(unasked=False)
        self.background: BackgroundResponses | None = None
        self.passes_whole = False  # whether targets share a dialect with clients
        self._dispatcher = dispatcher
        self._keys = keys
        self._metrics = metrics
        self._server = server
        self._rules = MemberRules(server.members.allow, server.members.refuse)
        self._clock = clock
        self.new_id = new_id
        self._open: set[ClientResponse] = set()
        self.draining = False

    @property
    def in_flight(self) -> int:
        return len(self._open)

    async def __call__(self, scope: Message, receive: Receive, send: SendMessage) -> None:
        task = asyncio.current_task()
        assert task is not None
        dialect, connection = SPOKEN.get(scope["path"]), connection_of(scope)
        now_s = self._clock.now_s
        request_id = self.new_id()
        REQUEST.set(request_id)
        make = ClientResponse if dialect is None else partial(TranslatedResponse, dialect)
        reply = make(send, request_id=request_id, clock=now_s, task=task, connection=connection)
        self._start_request(reply, scope)
        unwatch: Callable[[], object] | None = None
        text: bytes | None = None
        try:
            self._admit(scope["method"])
            fields, now_us = read_fields(scope["headers"]), self._clock.wall_us()
            identity = await authenticate(
                self._keys, require_token(fields.token), now_us=now_us, scope=INFERENCE
            )
            identity = self._tag(identity, fields.tags, reply)
            text = await self._body(scope["path"], fields, connection, receive)
            if DEPLOYMENT in scope:
                text = with_model(text, fields.media, scope[DEPLOYMENT])
            unwatch = _watch_disconnect(connection, receive, reply)
            asked = await self._parse_body(scope["path"], fields, text, reply, identity)
            if dialect is None and fields.once is None:
                await self._dispatcher.dispatch(asked, identity, reply)
            else:
                await self._otherwise(scope["path"], fields, text, asked, identity, reply)
        except RequestError as error:
            methods = b"GET, HEAD, POST" if scope["path"] == CHAT_PATH else b"POST"
            last = text is None and waits_to_send(scope)
            await refuse(reply, error, last=last, methods=methods)
            drop_traceback(error)
        except asyncio.CancelledError:
            if reply.ended_by is None:
                if not self.draining:
                    raise
                reply.ended_by = "drain"
            task.uncancel()
            await send_ending(reply, connection, self._server.timeouts.client_stall_s)
        except Exception:  # the outermost handler: a defect must not end the worker
            log.exception("request failed request=%s", reply.request_id)
            if not reply.started:
                await refuse(reply, RequestError("internal", _FAILED))
        finally:
            if unwatch is not None:
                unwatch()
            self._open.discard(reply)
            self._metrics.working = len(self._open)
            reply.detach()

    def _tag(self, identity: Identity, said: str | None, reply: ClientResponse) -> Identity:
        """Return the identity with the request's tags; the answer's head names ignored ones."""
        if said is not None:
            identity, ignored = with_request_tags(identity, said, self._dispatcher.admission)
            if ignored:
                reply.wrap_send(telling_ignored(ignored))
        return identity

    def _start_request(self, reply: ClientResponse, scope: Message) -> None:
        self._open.add(reply)
        self._metrics.working = len(self._open)
        if STORAGE in scope and isinstance(reply, TranslatedResponse):
            reply.storage = scope[STORAGE]
        observer = self._dispatcher.observer
        if observer is not None:
            reply.story = observer.start_trace(reply.request_id, scope["path"], scope["headers"])

    def open_replies(self) -> set[ClientResponse]:
        """Return the responses in progress."""
        return self._open

    async def sweep(self) -> None:
        """Run until cancelled: end requests that stall or exceed their total time."""
        limits = self._server.timeouts
        while True:
            await next_tick(LATE_CHECK_S)
            if self.draining:
                self._dispatcher.waiting.drain()
            self._end_late(limits, self._clock.now_s())

    def _end_late(self, limits: TimeoutsSection, now: float) -> None:
        for reply in tuple(self._open):  # a variable of the sweeper would keep the last one
            if reply.is_stalled(now, limits.client_stall_s):
                reply.end("client_stall")
            elif now - reply.opened_s > (reply.total_s or limits.total_s):
                reply.end("total")
            elif reply.keeps_alive:
                reply.keep_alive(now)

    async def _parse_body(
        self,
        path: str,
        fields: RequestHead,
        text: bytes,
        reply: ClientResponse,
        identity: Identity,
    ) -> InferenceRequest:
        """Return the decoded request; a thread reads large bodies, another process sounds."""
        if isinstance(reply, TranslatedResponse):
            asked = await self._translate_body(fields, text, reply, identity)
        elif len(text) > LARGE_BYTES:
            asked = await asyncio.to_thread(self._decode_body, path, fields, text)
        else:
            asked = self._decode_body(path, fields, text)
        if asked.features and _STORE in asked.features:
            asked = self.storage.open_chat(asked, identity.team_id, reply)
        if self._dispatcher.cache is not None or fields.caching is not None:
            self._dispatcher.consider_cache(reply, asked, path, fields, text)
        if asked.form is None and not (asked.has_sound or asked.media_parts):
            return asked
        measure = KINDS[asked.kind].measure
        if measure is None:
            return asked
        return await measure(asked, sounds_for(self._dispatcher.sounds, identity.team_id))

    def _decode_body(self, path: str, fields: RequestHead, text: bytes) -> InferenceRequest:
        """Read the body by the kind of its path."""
        body = IncomingBody(
            text, fields.media or "", fields.session, self._server.max_n, self._rules
        )
        return KIND_PATHS[path].read(body)

    async def _translate_body(
        self, fields: RequestHead, text: bytes, reply: TranslatedResponse, identity: Identity
    ) -> InferenceRequest:
        """Decode a body of another dialect, with the stored conversation that it continues."""
        large = len(text) > LARGE_SPOKEN_BYTES
        members = await asyncio.to_thread(decode_members, text) if large else decode_members(text)
        reply.passes_whole, reply.asked_in_headers = self.passes_whole, fields.asked_of_api
        if reply.continues:
            storage = self.storage if reply.storage is None else reply.storage
            reply.keeper = await storage.open_request(
                members, identity.team_id, reply.request_id, purpose=reply.purpose
            )
            large = len(bytes(members.get("input", b""))) > LARGE_SPOKEN_BYTES
        ignored = self._rules.drop_denied(members, JUDGED_MEMBERS)
        decode = partial(
            reply.decode_request, members, max_n=self._server.max_n, session=fields.session,
            wall_s=self._clock.wall_us() // 1_000_000,
        )  # fmt: skip
        asked = await asyncio.to_thread(decode) if large else decode()
        return asked.with_ignored(ignored) if ignored else asked

    async def _dispatch_translated(
        self, asked: InferenceRequest, identity: Identity, reply: TranslatedResponse
    ) -> None:
        """Dispatch a translated request, or count its tokens."""
        if reply.purpose == "count":
            await self._count_tokens(asked, identity, reply)
            return
        background = self.background if reply.keeper and reply.keeper.background else None
        if reply.voice is not None and (asked.stream or background is not None):
            # 404 for a missing model, before a background answer is promised, too.
            reply.voice.prompt_estimate = self._dispatcher.plans.value.prompt_tokens(
                asked, identity, self._clock
            )
        dispatch = partial(self._dispatcher.dispatch, asked, identity)
        if reply.storage is not None and reply.storage.warms_up:
            await reply.send_unasked()
        elif background is not None and reply.keeper is not None:
            if self._dispatcher.plans.value.inspects:
                reply.keeper.withhold()
            await background.begin(reply, stream=asked.stream, dispatch=dispatch)
        else:
            await dispatch(reply)

    async def _count_tokens(
        self, asked: InferenceRequest, identity: Identity, reply: TranslatedResponse
    ) -> None:
        """Send the number of a prompt's tokens: its target's own count, else the estimate.

        It counts as a request in rate limits: a target is called with the gateway's key.
        """
        plans, limits = self._dispatcher.plans.value, self._dispatcher.limits
        tokens = plans.prompt_tokens(asked, identity, self._clock)  # 404 for a missing model
        if limits is not None:
            reply.use = await limits.count(identity, asked.model, 0)
            if reply.use is not None and reply.use.counted.over is not None:
                raise rate_error(reply.use.counted.over)
        if plans.inspects:  # the target is chosen as for an answer
            asked = await self._dispatcher.inspect(asked, identity, reply)
        counted = await count_at_target(plans, asked, identity, reply.request_id, self._clock)
        if counted is None:
            told = [JSON, ESTIMATED]
        else:
            tokens, told = counted.tokens, [JSON, COUNTED, (BACKEND, counted.target.encode())]
        await reply.send_whole(200, told, encode(reply.count_document(tokens)))

    async def _otherwise(
        self,
        path: str,
        fields: RequestHead,
        text: bytes,
        asked: InferenceRequest,
        identity: Identity,
        reply: ClientResponse,
    ) -> None:
        """Dispatch a request in another dialect, or one with an `Idempotency-Key`."""
        answer: Callable[[], Awaitable[None]]
        if isinstance(reply, TranslatedResponse):
            answer = partial(self._dispatch_translated, asked, identity, reply)
        else:
            answer = partial(self._dispatcher.dispatch, asked, identity, reply)
        if fields.once is None:
            await answer()
        else:
            named = IdempotentRequest(fields.once, identity.key_id, path, text)
            await self._dispatcher.submissions.run_first(named, reply, answer)

    def _admit(self, method: str) -> None:
        if method != "POST":
            raise RequestError("method", f"This path does not support {method}. Use POST.")
        if len(self._open) > self._server.max_in_flight:
            raise RequestError(
                "overloaded", "Too many open requests. Retry in 1 s.", retry_after_s=1.0
            )

    async def _body(
        self, path: str, fields: RequestHead, connection: RequestConnection | None, receive: Receive
    ) -> bytes:
        """Return the whole body, within the size limit and the receive deadline."""
        limit = self._server.body_limit_bytes
        if fields.length > limit:
            raise _too_large(limit)
        if fields.encoding is not None:
            raise RequestError("media_type", COMPRESSED)
        if fields.media is not None:
            _check_media_type(path, fields.media)
        text = None if connection is None else connection.take_body()
        if text is None:  # usually the whole body is here, and no deadline is needed
            text = await self._receive_body(receive, limit)
        if len(text) > limit:
            raise _too_large(limit)
        return text

    async def _receive_body(self, receive: Receive, limit: int) -> bytes:
        try:
            async with asyncio.timeout(self._server.timeouts.receive_s) as patience:
                return await _join_parts(await receive(), receive, limit, patience)
        except TimeoutError as error:
            raise RequestError("slow_client", "The request body did not arrive in time.") from error


def _check_media_type(path: str, said: str) -> None:
    reader = KIND_PATHS.get(path, _CHAT_READER)
    if reader.media_type not in said.partition(";")[0].lower():
        raise RequestError("media_type", reader.fix)


async def _join_parts(
    message: Message, receive: Receive, limit: int, patience: asyncio.Timeout
) -> bytes:
    """Return all parts joined. Received bytes extend the timeout, for slow lines."""
    if message["type"] == "http.request" and not message.get("more_body", False):
        whole: bytes = message.get("body", b"")
        return whole
    parts: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise RequestError("bad_request", "The client disconnected before its body ended.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        until = patience.when()
        if until is not None:
            patience.reschedule(until + len(parts[-1]) / SLOWEST_BYTES_PER_S)
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()


def _watch_disconnect(
    connection: RequestConnection | None, receive: Receive, reply: ClientResponse
) -> Callable[[], object]:
    """End the request on a disconnect from now on; return the callable that stops watching."""
    if connection is None:
        return asyncio.create_task(_watch(receive, reply)).cancel
    return connection.listen(partial(reply.end, CLIENT_GONE))


async def _watch(receive: Receive, reply: ClientResponse) -> None:
    """End the request when its client disconnects, whatever it is doing."""
    while (await receive())["type"] != "http.disconnect":
        pass
    reply.end(CLIENT_GONE)


def _too_large(limit: int) -> RequestError:
    words = f"The body is larger than {limit:,} bytes (`server.body_limit_bytes`). Send less"
    return RequestError("too_large", f"{words}, or have the gateway's operator raise the limit.")


def is_hot(scope: Message) -> bool:
    """Return whether the request is for a model; listing stored completions is not."""
    if scope["type"] != "http" or scope["path"] not in HOT:
        return False
    return bool(scope["path"] != CHAT_PATH or scope["method"] not in ("GET", "HEAD"))
