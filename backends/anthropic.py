"""Client of targets with Anthropic's Messages API: Anthropic and compatible servers.

A Messages request of a client (`/messages`) is forwarded unchanged, and the answer's events are
embedded in chat events (`backends.native_events`), which the relay and the ledger read. A chat
request is translated (`messages_request`), and so is its answer (`messages_answer`). Connections,
deadlines, disconnects and errors are those of `OpenAIBackend`. This module adds the key's header,
the version, and client betas that the operator allows. `messages_moved` adapts turns of other
models. Two refusals of Anthropic are mapped to common errors: a prompt above the context, and a
spent balance, which Anthropic reports as 400.
"""

import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Final

import msgspec
from msgspec.structs import replace

from backends.address_policy import PUBLIC, AddressPolicy
from backends.base import Call, Exchange
from backends.errors import RequestDeclined, UpstreamBroken, UpstreamRejected
from backends.exchange import read_all
from backends.http import HttpClient
from backends.http_connection import HttpExchange
from backends.messages_answer import MessagesStream, chat_answer
from backends.messages_moved import moved_body
from backends.messages_request import NoMessagesForm, messages_request
from backends.openai import FORWARDED, Credentials, OpenAIBackend
from backends.refusal import CONTEXT_LENGTH, TOO_LONG
from backends.reported import error_in_events

MESSAGES_PATH: Final = "/messages"
COUNT_PATH: Final = "/messages/count_tokens"
CHAT_PATH: Final = "/chat/completions"
VERSION_HEADER: Final = "anthropic-version"
BETA_HEADER: Final = "anthropic-beta"
_VERSION: Final = "2023-06-01"
_HOME: Final = "api.anthropic.com"
_OAUTH: Final = "sk-ant-oat"  # such a key is a bearer token
_ANSWER_LIMIT_BYTES: Final = 64 * 1024 * 1024
_REFUSAL_LIMIT_BYTES: Final = 1024 * 1024
_TOO_LONG: Final = re.compile(
    rb"prompt is too long|exceeds? (?:the )?(?:model's )?(?:maximum )?context|context window"
)
_NO_MONEY: Final = re.compile(rb"credit balance is too low")


class MessagesExchange:
    """An answer whose bytes are translated as they arrive."""

    __slots__ = ("_chunks", "_inner", "headers", "status")

    def __init__(
        self, inner: HttpExchange, chunks: AsyncGenerator[bytes, None], headers: Mapping[str, str]
    ) -> None:
        self.status = inner.status
        self.headers = headers
        self._inner = inner
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        """Close the answer; before its end, this also closes the target's socket. Idempotent."""
        await self._inner.aclose()
        with suppress(RuntimeError):  # it may be running in a task that is being cancelled
            await self._chunks.aclose()


class _MessagesWire(OpenAIBackend):
    """An OpenAI wire client with Anthropic's headers."""

    forwarded: ClassVar[frozenset[str]] = FORWARDED | {VERSION_HEADER, BETA_HEADER}

    def _proof(self, key: str) -> dict[str, str]:
        """Return Anthropic's key header; compatible servers also get a bearer token."""
        if key.startswith(_OAUTH):
            return super()._proof(key)
        own = {"x-api-key": key}
        return own if self._origin.host == _HOME else {**own, **super()._proof(key)}


class AnthropicBackend:
    """Client of one base URL with one key.

    `betas`: values of `anthropic-beta` that clients may request; `NAME-*` allows a prefix.
    """

    def __init__(
        self,
        base_url: str,
        credentials: Credentials | None = None,
        *,
        client: HttpClient,
        reach: AddressPolicy = PUBLIC,
        betas: Sequence[str] = (),
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        whole = base_url.rstrip("/")  # SDKs are given the address without its version
        whole = whole if whole.endswith("/v1") else f"{whole}/v1"
        self._wire = _MessagesWire(
            whole, credentials, client=client, reach=reach, wall_clock=wall_clock
        )
        self.secrets = self._wire.secrets
        self._wall_clock = wall_clock
        self._betas = frozenset(beta for beta in betas if not beta.endswith("*"))
        self._beginnings = tuple(beta[:-1] for beta in betas if beta.endswith("*"))

    async def open(self, call: Call) -> Exchange:
        """Send the call. Return its answer as chat, or raise the error of its status."""
        native = call.path != CHAT_PATH
        call = self._with_version(_moved(call if native else _translated(call)))
        inner = await self._wire.open(call)
        if inner.status >= 400:
            return _ready(inner, await _refused(inner))
        if call.path == COUNT_PATH:
            return inner
        headers = {name: value for name, value in inner.headers.items() if name != "content-length"}
        created_s = int(self._wall_clock())
        if call.stream:
            stream = MessagesStream(created_s=created_s, native=native)
            return MessagesExchange(inner, _events(inner, stream), headers)
        body = await read_all(inner, _ANSWER_LIMIT_BYTES)
        return _ready(inner, chat_answer(body, created_s=created_s, native=native), headers)

    async def aclose(self) -> None:
        """Do nothing: the HTTP client is shared."""

    def _with_version(self, call: Call) -> Call:
        """Return the call with the API version and the allowed betas."""
        headers = {VERSION_HEADER: _VERSION, **call.headers}
        asked = [beta.strip() for beta in headers.pop(BETA_HEADER, "").split(",") if beta.strip()]
        sent = [beta for beta in asked if self._lets_through(beta)]
        if sent:
            headers[BETA_HEADER] = ",".join(sent)
        left = tuple(f"{BETA_HEADER}.{beta}" for beta in asked if beta not in sent)
        call.transmission.ignored += left
        return replace(call, headers=headers)

    def _lets_through(self, beta: str) -> bool:
        return beta in self._betas or (bool(self._beginnings) and beta.startswith(self._beginnings))


async def _refused(inner: HttpExchange) -> bytes:
    """Return the body of a refusal with the common code for a long context.

    Raises `UpstreamRejected` for a spent balance.
    """
    body = await read_all(inner, _REFUSAL_LIMIT_BYTES)
    if inner.status == 400 and _NO_MONEY.search(body):
        raise UpstreamRejected("the target's balance is spent", status=inner.status)
    if inner.status in (400, 413) and _TOO_LONG.search(body):
        return _with_context_code(body)
    return body


def _translated(call: Call) -> Call:
    """Return the call in Messages. Raises `RequestDeclined` if Messages cannot express it."""
    try:
        made = messages_request(call.body)
    except NoMessagesForm as error:
        call.transmission.takes()
        declined = RequestDeclined("the target's API has no form for it", status=400)
        shown = {"message": str(error), "type": "invalid_request_error", "param": error.member}
        declined.body = msgspec.json.encode({"error": shown})
        raise call.transmission.judge(declined) from None
    call.transmission.ignored += made.ignored
    return replace(call, path=MESSAGES_PATH, body=made.body)


def _moved(call: Call) -> Call:
    """Return the call without what its model refuses of other models' turns."""
    moved = moved_body(call.body)
    call.transmission.ignored += moved.ignored
    return call if moved.body is call.body else replace(call, body=moved.body)


def _ready(
    inner: HttpExchange, body: bytes, headers: Mapping[str, str] | None = None
) -> MessagesExchange:
    return MessagesExchange(inner, _once(body), inner.headers if headers is None else headers)


async def _once(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


async def _events(inner: HttpExchange, stream: MessagesStream) -> AsyncGenerator[bytes, None]:
    """Yield chat events. Raises `UpstreamBroken` if the stream ends before its last event."""
    async for piece in inner:
        told = stream.feed(piece)
        if told:
            yield told
    if stream.ended:
        return
    raise error_in_events(stream.rest) or UpstreamBroken("the stream ended before the answer did")


def _with_context_code(body: bytes) -> bytes:
    try:
        told = msgspec.json.decode(body, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        told = {}
    error = told.get("error")
    shown = dict(error) if isinstance(error, dict) else {"message": "The prompt is too long."}
    shown |= {"code": CONTEXT_LENGTH, "cause": TOO_LONG}
    return msgspec.json.encode({"error": shown})
