"""A transport for httpx clients of targets, with the address rules of the request path.

Connections are pooled by name, and each connects to a checked address (`backends.address_policy`);
TLS still verifies the name.
"""

import ssl
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from backends.address_lookup import resolve_addresses
from backends.address_policy import AddressPolicy
from backends.sending import EXTENSION, Transmission

CONNECTIONS, KEPT, KEPT_S = 256, 32, 5.0


class PinnedTransport(httpx.AsyncHTTPTransport):
    """An httpx transport, as in `httpx.AsyncClient(transport=PinnedTransport(reach))`.

    It uses no proxy. A request's extension `EXTENSION` records whether a byte of it has left.
    """

    def __init__(self, reach: AddressPolicy, *, tls: ssl.SSLContext | None = None) -> None:
        tls = tls or ssl.create_default_context()
        super().__init__(verify=tls, trust_env=False)
        # httpx has no public way to set a network backend; all its transports have this attribute.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=CONNECTIONS,
            max_keepalive_connections=KEPT,
            keepalive_expiry=KEPT_S,
            network_backend=_JudgedAddress(reach),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        transmission = request.extensions.get(EXTENSION)
        if isinstance(transmission, Transmission):
            transmission.takes()
            request.extensions = {**request.extensions, "trace": transmission.trace}
        return await super().handle_async_request(request)


class _JudgedAddress(httpcore.AsyncNetworkBackend):
    def __init__(self, reach: AddressPolicy) -> None:
        self._reach = reach
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  (httpcore's own name)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            *others, last = await resolve_addresses(host, port, self._reach)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(str(error)) from error
        for address in others:
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._inner.connect_tcp(last, port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)
