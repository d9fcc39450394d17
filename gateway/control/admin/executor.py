"""Execution of operations in a worker: bounded bodies, threads, one at a time."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeVar

import msgspec
from fastapi import Request
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from starlette.requests import ClientDisconnect

from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.control.access import caller_of
from gateway.control.admin.enginehost import EngineHost
from gateway.control.admin.refusals import request_error_of
from gateway.control.admin.verb import AdminOperation, OperationContext
from gateway.errors import RequestError
from gateway.http.body import decode_object, encode
from ledger.identity.keys import Identity

AT_ONCE = 8  # in work and waiting
EACH = 4  # of one team, so that other teams can still revoke a key
RETRY_S = 2.0
MOST_DIGITS = 40  # of a number, its zeros counted
T = TypeVar("T", bound=msgspec.Struct)
_AT_FAULT = re.compile(r"`\$\.(\w+)|field `(\w+)`")


class AdminExecutor:
    """Executor of a worker: configuration for names, ledger, and engines."""

    def __init__(
        self,
        settings: Settings,
        make_engine: Callable[[], Engine],
        host: EngineHost,
        clock: Clock,
    ) -> None:
        """Create an executor; `settings` are those of the configuration file."""
        self._settings = settings
        self._make_engine = make_engine
        self._host = host
        self._clock = clock
        self._turn = asyncio.Lock()
        self._here: Counter[str] = Counter()  # by team

    async def answer(self, verb: AdminOperation[Any], request: Request) -> bytes:
        """Return an operation's result as JSON. Raises the error for the client."""
        identity = caller_of(request)
        given = await self._parse_input(verb, request)
        whose = identity.team_id or actor(identity)
        if self._here.total() >= AT_ONCE or self._here[whose] >= EACH:
            raise RequestError(
                "overloaded",
                "Too many admin requests are waiting. Retry in a few seconds.",
                retry_after_s=RETRY_S,
            )
        self._here[whose] += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(self._work, verb, identity, given)
        except DBAPIError as error:
            message = "The gateway cannot reach its ledger. Retry in a few seconds."
            raise RequestError("unavailable", message, retry_after_s=RETRY_S) from error
        except Exception as error:
            if (told := request_error_of(error)) is not None:
                raise told from error
            raise
        finally:
            self._here[whose] -= 1
            self._here += Counter()  # drops teams with 0

    def _work(self, verb: AdminOperation[Any], identity: Identity, given: Any) -> bytes:
        """Run an operation in a thread and encode it there: a long list would block the loop.

        Operations are rare, so no database connection is kept open.
        """
        engine = self._make_engine()
        try:
            by, now_us = actor(identity), self._clock.wall_us()
            place = OperationContext(
                self._settings, by, now_us, lambda: engine, self._engines, identity
            )
            return encode(verb.work(place, given))
        finally:
            engine.dispose()

    @contextmanager
    def _engines(self) -> Iterator[EngineHost]:
        yield self._host

    async def _parse_input(self, verb: AdminOperation[Any], request: Request) -> Any:
        """Return the input, read within size limit and deadline; all members known and storable."""
        try:
            if verb.in_query:
                return _storable(msgspec.convert(_query(request), verb.given, strict=False))
            body = await self._body(request, verb.largest)
            return _storable(decode_object(body, verb.given))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            found = _AT_FAULT.search(str(error))
            where = "The query" if verb.in_query else "The body"
            param = (found[1] or found[2]) if found else None
            raise RequestError("bad_request", f"{where}: {error}.", param=param) from error

    async def _body(self, request: Request, largest: int) -> bytes:
        text = bytearray()
        try:
            async with asyncio.timeout(self._settings.server.timeouts.receive_s):
                async for part in request.stream():
                    text += part
                    if len(text) > largest:
                        words = f"The body is larger than {largest} bytes."
                        raise RequestError("too_large", words)
        except TimeoutError as error:
            raise RequestError(
                "slow_client",
                "The body did not arrive within `server.timeouts.receive_s`. Send it faster.",
            ) from error
        except ClientDisconnect as error:
            raise RequestError(
                "bad_request", "The client disconnected before its request was complete."
            ) from error
        return bytes(text)


def actor(identity: Identity) -> str:
    """Return the actor as the ledger names it: a key's user, else the key."""
    return identity.user_id or f"key:{identity.key_id}"


def _storable(given: T) -> T:
    """Return the input if it can be stored, else raise `RequestError`.

    PostgreSQL does not store NUL, a note must not contain terminal controls, and a number must be
    finite and short enough to be written out.
    """
    for name, value in msgspec.structs.asdict(given).items():
        texts = value if isinstance(value, list) else [value]
        if isinstance(value, dict):
            texts = [*value, *value.values()]
        if any(isinstance(text, str) and "\0" in text for text in texts):
            raise RequestError(
                "bad_request", f"`{name}` contains a NUL character. Remove it.", param=name
            )
        if isinstance(value, Decimal) and not _is_amount(value):
            words = f"`{name}` is not a number of at most {MOST_DIGITS} digits."
            raise RequestError("bad_request", words, param=name)
        if name == "note" and value is not None and not value.isprintable():
            raise RequestError(
                "bad_request", "`note` must be one line of printable characters.", param=name
            )
    return given


def _is_amount(value: Decimal) -> bool:
    exponent = value.as_tuple().exponent
    digits = len(value.as_tuple().digits)
    return isinstance(exponent, int) and digits + abs(exponent) <= MOST_DIGITS


def _query(request: Request) -> dict[str, str]:
    """Return the query parameters. Raises `RequestError` if a name occurs twice."""
    pairs = request.query_params.multi_items()
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise RequestError(
                "bad_request", f"`{name}` is given more than once. Send it once.", param=name
            )
    return dict(pairs)
