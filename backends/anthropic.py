"""Targets that speak Anthropic's Messages: Anthropic's own, and servers that speak like it.

Two kinds of calls come here. A body that a client wrote in Messages (`/messages`) goes on as it is,
and the answer's events come back inside chat's (`backends.native_events`), which relays and books
read. A body of chat is translated (`messages_request`), and so is its answer (`messages_answer`).
The wire is `OpenAIBackend`'s: its connections, deadlines, hang-ups and kinds of errors. Here are
the key's header, the version, and the betas of a client that the operator lets through. Turns that
other models made are told as Claude takes them (`messages_moved`).

Refusals that only Anthropic's words tell are told in those that everybody here reads: a prompt
beyond the context, and a balance that is spent, which comes as a 400.
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
    """An answer whose bytes are translated on their way."""

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
        """Idempotent; before the end it closes the target's socket."""
        await self._inner.aclose()
        with suppress(RuntimeError):  # it may be running in a task that is being cancelled
            await self._chunks.aclose()


class _MessagesWire(OpenAIBackend):
    """Speaks over the same wire with Anthropic's heads."""

    forwarded: ClassVar[frozenset[str]] = FORWARDED | {VERSION_HEADER, BETA_HEADER}

    def _proof(self, key: str) -> dict[str, str]:
        """By Anthropic's header; servers that speak like it look for one or the other."""
        if key.startswith(_OAUTH):
            return super()._proof(key)
        own = {"x-api-key": key}
        return own if self._origin.host == _HOME else {**own, **super()._proof(key)}


class AnthropicBackend:
    """One base URL with one key.

    `betas`: what clients may ask for in `anthropic-beta`; `NAME-*` is any that begins so.
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
        """Send the call; return its answer as chat's, or raise what its status means."""
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
        """Nothing of its own to close: the client is shared."""

    def _with_version(self, call: Call) -> Call:
        """Return the call with the version, and with the betas that may be sent."""
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
    """Return the body of a refusal, in the words that tell here what it is about."""
    body = await read_all(inner, _REFUSAL_LIMIT_BYTES)
    if inner.status == 400 and _NO_MONEY.search(body):
        raise UpstreamRejected("the target's balance is spent", status=inner.status)
    if inner.status in (400, 413) and _TOO_LONG.search(body):
        return _with_context_code(body)
    return body


def _translated(call: Call) -> Call:
    """Return the call in Messages; raises `RequestDeclined` for what they have no form for."""
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
    """Raise `UpstreamBroken` where the answer ends without its last word."""
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
