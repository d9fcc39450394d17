"""HTTP/1.1 client of the request path: bounded keep-alive pools, deadlines, one retry.

    client = HttpClient()
    exchange = await client.open(origin, payload, deadlines)

The newest idle connection is used first, so that unused ones age and close. A kept connection can
die when it is reused. Only then, and only if no byte was received, the request is sent again on a
fresh connection: later it may have been processed, and a second attempt needs its own row. There
are no redirects, decompression or proxies: the caller sees the target's answer unchanged.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from backends.address_lookup import AddressNotAllowed, resolve_addresses
from backends.address_policy import (
    parse_address,
)
from backends.base import Deadlines
from backends.dialing import dial
from backends.errors import (
    BackendError,
    InvalidResponse,
    UpstreamOverloaded,
    UpstreamUnreachable,
)
from backends.http_connection import READ_BYTES, HttpExchange, StaleConnection, UpstreamConnection
from backends.origin import Origin
from backends.sending import Transmission


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Limits of one origin's pool. `idle_s` should be below the server's keep-alive time."""

    connections: int = 1024
    waiters: int = 1024
    idle_s: float = 4.0


class HttpClient:
    """HTTP connections to any number of origins, for one event loop."""

    def __init__(self, limits: PoolLimits | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._limits = limits or PoolLimits()
        self._tls = tls
        self._pools: dict[Origin, _Pool] = {}

    async def open(
        self,
        origin: Origin,
        payload: bytes,
        deadlines: Deadlines,
        transmission: Transmission | None = None,
    ) -> HttpExchange:
        """Send an encoded request. Return once the head of its answer has arrived.

        `transmission` and each error record whether a byte has left.
        """
        transmission = transmission or Transmission()
        if transmission.begun is None:
            transmission.begun = False
        fresh = False
        try:
            pool = self._pools.get(origin) or self._add(origin)
            while True:
                connection = await pool.acquire(deadlines.connect_s, fresh=fresh)
                try:
                    exchange = connection.start(payload, deadlines.idle_s)
                    transmission.begun = True  # the next line is the first that waits
                    await exchange.head(deadlines.head_s)
                except StaleConnection:
                    connection.abort()
                    if fresh:
                        raise InvalidResponse(
                            "two connections in a row closed without a response"
                        ) from None
                    fresh = True
                except BaseException:
                    connection.abort()
                    raise
                else:
                    return exchange
        except BackendError as error:
            transmission.judge(error)
            raise

    async def aclose(self) -> None:
        """Close every connection; answers in progress fail."""
        for pool in self._pools.values():
            pool.close()

    def connections(self, origin: Origin) -> int:
        """Return the number of connections to `origin`, including idle ones."""
        pool = self._pools.get(origin)
        return pool.open if pool is not None else 0

    def _add(self, origin: Origin) -> "_Pool":
        tls = None
        if origin.scheme == "https":
            tls = self._tls = self._tls or _make_ssl_context()
        # The running loop is cached: on Python 3.11 every lookup is a system call.
        loop = asyncio.get_running_loop()
        pool = self._pools[origin] = _Pool(loop, origin, self._limits, tls)
        return pool


def _make_ssl_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class _Pool:
    """One origin's connections. `open` counts all used slots, including connecting ones."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        origin: Origin,
        limits: PoolLimits,
        tls: ssl.SSLContext | None,
    ) -> None:
        self.open = 0
        self._loop = loop
        self._origin = origin
        self._limits = limits
        self._tls = tls
        self._room = memoryview(bytearray(READ_BYTES))
        self._idle: deque[UpstreamConnection] = deque()
        self._all: set[UpstreamConnection] = set()
        self._waiters: deque[asyncio.Future[UpstreamConnection | None]] = deque()
        self._looking_up: asyncio.Task[list[str]] | None = None
        self._reaper: asyncio.TimerHandle | None = None

    async def acquire(self, timeout_s: float, *, fresh: bool) -> UpstreamConnection:
        """Return a connection ready for a request: idle, new, or released by another request."""
        if self._idle and not fresh:
            return self._idle.pop()
        if self.open >= self._limits.connections and self._idle:
            self._idle[0].abort()  # a fresh connection was requested: free a slot
        if self.open < self._limits.connections:
            self.open += 1
        else:
            handed = await self._wait(timeout_s)
            if handed is not None:
                return handed
        return await self._connect(timeout_s)

    async def _wait(self, timeout_s: float) -> UpstreamConnection | None:
        """Queue for a connection or, when one dies, for its slot (`None`)."""
        if len(self._waiters) >= self._limits.waiters:
            raise UpstreamOverloaded(f"all connections to {self._origin.host} are in use")
        waiter: asyncio.Future[UpstreamConnection | None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout_s):
                return await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._return_connection(waiter.result())
            with suppress(ValueError):
                self._waiters.remove(waiter)
            if isinstance(error, TimeoutError):
                raise UpstreamOverloaded(
                    f"all connections to {self._origin.host} are in use"
                ) from None
            raise

    def _return_connection(self, handed: UpstreamConnection | None) -> None:
        if handed is None:
            self._free_slot()
        else:
            self._free_connection(handed, reusable=True)

    async def _connect(self, timeout_s: float) -> UpstreamConnection:
        """Open a socket on the slot that the caller holds."""
        connection = UpstreamConnection(self._loop, self._free_connection, self._room)
        self._all.add(connection)
        origin = self._origin
        name = origin.host if self._tls is not None else None
        make = partial(_same, connection)
        try:
            async with asyncio.timeout(timeout_s):
                await self._reach(make, name)
        except TimeoutError:
            connection.abort()
            raise UpstreamUnreachable(f"no connection to {origin.host} in {timeout_s} s") from None
        except (OSError, ssl.SSLError, UnicodeError) as error:
            connection.abort()
            raise UpstreamUnreachable(
                f"no connection to {origin.host}: {_reason(error)}"
            ) from error
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _reach(self, make: Callable[[], UpstreamConnection], name: str | None) -> None:
        """Connect to the first address that answers, without another DNS lookup."""
        port, addresses = self._origin.port, await self._addresses()
        connect = partial(self._loop.create_connection, make, ssl=self._tls, server_hostname=name)
        while len(addresses) > 1:
            address, dialled = await dial(self._loop, addresses, port)
            try:
                await connect(sock=dialled)
            except (OSError, ssl.SSLError):  # the TLS certificate is wrong
                addresses.remove(address)
            else:
                return
        await connect(host=addresses[0], port=port)

    async def _addresses(self) -> list[str]:
        """Resolve the name, sharing one lookup among all waiting requests.

        The loop has four threads for all lookups, which cannot be cancelled: many lookups of a name
        with a silent server would block all others.
        """
        origin = self._origin
        if parse_address(origin.host) is not None:
            return await resolve_addresses(origin.host, origin.port, origin.reach)
        if self._looking_up is None or self._looking_up.done():
            asked = resolve_addresses(origin.host, origin.port, origin.reach)
            self._looking_up = self._loop.create_task(asked)
            self._looking_up.add_done_callback(_discard_error)
        return list(await asyncio.shield(self._looking_up))

    def _free_connection(self, connection: UpstreamConnection, reusable: bool) -> None:
        if not reusable:
            self._all.discard(connection)
            with suppress(ValueError):
                self._idle.remove(connection)
            self._free_slot()
            return
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if self._reaper is None:
            self._reaper = self._loop.call_later(self._limits.idle_s, self._reap)

    def _free_slot(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)  # the slot changes hands and stays counted
                return
        self.open -= 1

    def _reap(self) -> None:
        """Close connections that were idle for too long; the oldest are on the left."""
        self._reaper = None
        idle, limit = self._idle, self._limits.idle_s
        now = self._loop.time()
        while idle and idle[0].idle_since + limit <= now + 0.001:
            idle[0].abort()
        if idle:
            self._reaper = self._loop.call_at(idle[0].idle_since + limit, self._reap)

    def close(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(UpstreamUnreachable("the client is closing"))
        for connection in list(self._all):
            connection.abort()
        if self._looking_up is not None:
            self._looking_up.cancel()
        if self._reaper is not None:
            self._reaper.cancel()
            self._reaper = None


def _discard_error(looked_up: asyncio.Task[list[str]]) -> None:
    """Read the exception of a lookup whose caller has given up, so that asyncio logs no warning."""
    if not looked_up.cancelled():
        looked_up.exception()


def _same(connection: UpstreamConnection) -> UpstreamConnection:
    return connection


def _reason(error: BaseException) -> str:
    """Return the reason of a failure without addresses and certificate contents."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate not accepted ({error.verify_message})"
    if isinstance(error, AddressNotAllowed):
        return str(error)  # about addresses, for the operator
    return type(error).__name__
