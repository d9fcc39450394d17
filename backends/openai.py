"""Client of targets with OpenAI's HTTP API: vLLM and most vendors. It relays bytes.

The request head has only listed headers of the client. Refusals and failures become
`backends.errors`; any other 4xx is passed on as the target's answer. Redirects are never followed,
since they could lead anywhere. A target's error texts may quote keys or prompts, so only a plain
code or type goes into our errors.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from backends.address_policy import PUBLIC, AddressPolicy
from backends.base import Call
from backends.charged_errors import charge_status
from backends.errors import (
    BackendError,
    InvalidResponse,
    RequestUnsendable,
    UpstreamRejected,
    WrongAddress,
    failure_of,
)
from backends.exchange import read_all
from backends.http import HttpClient
from backends.http_connection import HttpExchange
from backends.origin import Origin
from backends.quirks import CHAT_PATH, NO_QUIRKS, Quirks
from backends.ratelimit import parse_rate_limit, parse_retry_after
from backends.reported import error_in, error_name, told_wait_s
from backends.secret import Secret
from backends.unreadable_answers import with_usage_of

# Headers that a call may add: tracing, and ids that identify a repeated call.
FORWARDED = frozenset({"x-request-id", "traceparent", "tracestate", "idempotency-key"})
_SAFE_VALUE = re.compile(r"[\x20-\x7e]{0,1024}")
_SAFE_PATH = re.compile(r"/[A-Za-z0-9/_.\-]{1,200}")
ROOT_PATHS = frozenset({"/tokenize", "/detokenize"})  # vLLM's paths outside `/v1`
_ERROR_LIMIT_BYTES = 64 * 1024
_ANSWER_LIMIT_BYTES = 4 * 1024 * 1024  # of an answer that cannot be relayed
_ERROR_WAIT_S = 1.0
_PATHS_KEPT = 32
_FAILURES = (408, 429)  # below 500, and no fault of the request: its own deadline, its limits
# Codes of a 429 that no wait resolves: our balance at the target is spent, as with a 402.
_NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials that are sent to a target; they are never shown."""

    api_key: Secret | None = None
    headers: Mapping[str, Secret] = field(default_factory=dict)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        return (*([] if self.api_key is None else [self.api_key]), *self.headers.values())


class OpenAIBackend:
    """Client of one base URL with one key. `forwarded`: headers that a call may add.

    `quirks`: the provider's differences from OpenAI.
    """

    forwarded: ClassVar[frozenset[str]] = FORWARDED

    def __init__(
        self,
        base_url: str,
        credentials: Credentials | None = None,
        *,
        client: HttpClient,
        reach: AddressPolicy = PUBLIC,
        wall_clock: Callable[[], float] = time.time,
        quirks: Quirks = NO_QUIRKS,
    ) -> None:
        self._quirks = quirks
        self._origin, self._path = Origin.parse(base_url, reach)
        self._root = self._path.removesuffix("/v1")
        self._credentials = credentials or Credentials()
        self.secrets = self._credentials.secrets
        self._client = client
        self._wall_clock = wall_clock
        self._heads: dict[str, bytes] = {}

    async def open(self, call: Call) -> HttpExchange:
        """Send the call. Return its answer, or raise the error of its status."""
        call.transmission.takes()
        if call.content_type is None:
            head = self._heads.get(call.path) or self._head(call.path)
        else:
            head = self._head(call.path, call.content_type)
        body, left_out = self.words_of(call.path, call.body)
        if left_out:
            call.transmission.ignored += left_out
        length = b"content-length: %d\r\n\r\n" % len(body)
        payload = b"".join((head, _extra(call.headers, self.forwarded), length, body))
        exchange = await self._client.open(self._origin, payload, call.deadlines, call.transmission)
        if exchange.status >= 500 or exchange.status in _FAILURES:
            raise await self._refusal(exchange)
        fault = _fault(exchange, stream=call.stream)
        if fault is not None:
            raise await self._reported(exchange, fault)
        return exchange

    def words_of(self, path: str, body: bytes) -> tuple[bytes, tuple[str, ...]]:
        """Return a body in the provider's form, and the members left out of it."""
        if self._quirks is NO_QUIRKS or path != CHAT_PATH:
            return body, ()
        return self._quirks.apply(body)

    async def aclose(self) -> None:
        """Do nothing: the HTTP client is shared."""

    def _proof(self, key: str) -> dict[str, str]:
        """Return the authentication headers for a key."""
        return {"authorization": f"Bearer {key}"}

    def _head(self, path: str, content_type: str | None = None) -> bytes:
        """Return the request head. A form's `content_type` has its own boundary and is not cached.

        Raises `RequestUnsendable` for an invalid path or content type.
        """
        if not _SAFE_PATH.fullmatch(path):
            raise RequestUnsendable(f"not a path of an API: {path!r}")
        if content_type is not None and not _SAFE_VALUE.fullmatch(content_type):
            raise RequestUnsendable(f"not a content type: {content_type!r}")
        lines = [
            f"POST {self._root if path in ROOT_PATHS else self._path}{path} HTTP/1.1",
            f"host: {self._origin.authority}",
            f"content-type: {content_type or 'application/json'}",
            f"accept: {'*/*' if content_type else 'application/json, text/event-stream'}",
            "accept-encoding: identity",
            "user-agent: breakeven",
        ]
        own = {name: value.reveal() for name, value in self._credentials.headers.items()}
        if self._credentials.api_key:
            key = self._credentials.api_key.reveal()
            own |= self._proof(key) | dict.fromkeys(self._quirks.key_headers, key)
        for name, value in own.items():
            if not _SAFE_VALUE.fullmatch(value) or not re.fullmatch(r"[A-Za-z0-9\-]+", name):
                raise RequestUnsendable(f"header {name!r} has characters that are not allowed")
            lines.append(f"{name.lower()}: {value}")
        head = ("\r\n".join(lines) + "\r\n").encode("ascii")
        if content_type is None and len(self._heads) < _PATHS_KEPT:
            self._heads[path] = head
        return head

    async def _reported(self, exchange: HttpExchange, fault: BackendError) -> BackendError:
        """Return the error in a whole body that came instead of a stream, or `fault`.

        A whole answer in its place was generated, and is billed by its usage.
        """
        try:
            if exchange.status < 300 and "json" in exchange.headers.get("content-type", ""):
                fault.hides_output = True
                body = await read_all(exchange, _ANSWER_LIMIT_BYTES, timeout_s=_ERROR_WAIT_S)
                return error_in(body) or with_usage_of(fault, body)
        except BackendError:
            pass
        finally:
            await exchange.aclose()
        return fault

    async def _refusal(self, exchange: HttpExchange) -> BackendError:
        """Return the error of a refusal, after reading its body so that the connection is kept."""
        status, headers = exchange.status, exchange.headers
        try:
            body = await read_all(exchange, _ERROR_LIMIT_BYTES, timeout_s=_ERROR_WAIT_S)
        except BackendError:
            body = b""
        said = error_name(_error_member(body))
        message = f"the target answered {status} ({said})"
        if status == 429 and said in _NO_MONEY:
            return charge_status(UpstreamRejected(message, status=status), body)
        kind = failure_of(status)
        wall_s = self._wall_clock()
        wait_s = parse_retry_after(headers, wall_s=wall_s)
        error = kind(
            message,
            status=status,
            retry_after_s=told_wait_s(body) if wait_s is None else wait_s,
            rate_limit=parse_rate_limit(headers, wall_s=wall_s),
        )
        return charge_status(error, body)


def _extra(headers: Mapping[str, str], forwarded: frozenset[str]) -> bytes:
    if len(headers) == 1:  # the usual case
        ((name, value),) = headers.items()
        if name in forwarded and _SAFE_VALUE.fullmatch(value):
            return f"{name}: {value}\r\n".encode("ascii")
    return "".join(
        f"{name.lower()}: {value}\r\n"
        for name, value in headers.items()
        if name.lower() in forwarded and _SAFE_VALUE.fullmatch(value)
    ).encode("ascii")


def _fault(exchange: HttpExchange, *, stream: bool) -> BackendError | None:
    """Return why an answer below 500 cannot be passed on, `None` if it can."""
    status, headers = exchange.status, exchange.headers
    if 300 <= status < 400:  # nothing was worked on: the address is another one
        words = f"the target answered with a redirect ({status}), which is not followed"
        return WrongAddress(words, status=status)
    if headers.get("content-encoding", "identity").lower() != "identity":
        packed = InvalidResponse("the answer is compressed, which was not asked for", status=status)
        packed.hides_output = status < 300
        return packed
    if stream and status < 300:
        kind = headers.get("content-type", "text/event-stream").lower()
        if "json" in kind.partition(";")[0] or "html" in kind:  # events stand under any other type
            return InvalidResponse(
                "the answer to a streamed call is not an event stream", status=status
            )
    return None


def _error_member(body: bytes) -> bytes:
    """Return the error object, which older servers send without an `error` member."""
    try:
        value = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b""
    return bytes(value.get("error", msgspec.Raw(body)))
