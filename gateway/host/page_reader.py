"""Repeated reads of pages of one server over a kept connection, within limits.

It is for pages that a host reads several times a minute: its engines' metrics, its own readiness.
`backends.http` costs a fifth of a general HTTP client.
"""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from backends.address_policy import AddressPolicy
from backends.base import Deadlines
from backends.engine.bounded import PAGE_BYTES, PAGE_S
from backends.errors import HeadTimeout, IdleTimeout, RequestUnsendable, WrongAddress
from backends.http import HttpClient
from backends.metrics import OTHER_PATHS, ProbeFailed, is_json
from backends.origin import Origin

ANSWER_S = 5.0  # for a connection and the head of an answer, and between two pieces of its body
_DEADLINES = Deadlines(connect_s=2 * ANSWER_S, head_s=2 * ANSWER_S, idle_s=ANSWER_S)


class PageText(NamedTuple):
    """A complete answer with any HTTP status."""

    status: int
    text: str

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300


class PageReader:
    """Reader of pages below one address; `headers` are sent with each request."""

    def __init__(
        self, client: HttpClient, address: str, reach: AddressPolicy, headers: Mapping[str, str]
    ) -> None:
        """Parse the address. Raises `ValueError` unless it is a plain HTTP(S) address."""
        self._client = client
        self._origin, self._path = Origin.parse(address, reach)
        self._headers = dict(headers)

    async def read(self, path: str) -> PageText:
        """Return the page, read within a time limit.

        Raises `ProbeFailed` for a page that is too large, `TimeoutError` for a server that is
        silent or a page that takes too long, `BackendError` if there is no answer.
        """
        try:
            async with asyncio.timeout(PAGE_S):
                return await self._fetch(self._request(path))
        except (HeadTimeout, IdleTimeout) as error:
            raise TimeoutError(str(error)) from error

    async def _fetch(self, request: bytes) -> PageText:
        async with asyncio.timeout(ANSWER_S):
            exchange = await self._client.open(self._origin, request, _DEADLINES)
        body = bytearray()
        try:
            async for part in exchange:
                body += part
                if len(body) > PAGE_BYTES:
                    raise ProbeFailed(f"its page is larger than {PAGE_BYTES:,} bytes")
        finally:
            await exchange.aclose()
        return PageText(exchange.status, body.decode("utf-8", "replace"))

    def _request(self, path: str) -> bytes:
        lines = [f"GET {self._path}{path} HTTP/1.1", f"host: {self._origin.authority}"]
        lines += ["accept: */*", "accept-encoding: identity", "user-agent: breakeven"]
        for name, value in self._headers.items():
            if not (value.isascii() and value.isprintable()):
                raise RequestUnsendable(f"header {name!r} has characters that are not allowed")
            lines.append(f"{name}: {value}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


async def read_metrics(pages: PageReader, path: str) -> tuple[str, str]:
    """Return the path of an engine's metrics and the page; `path` is tried first.

    Raises the errors of `PageReader.read`, and `WrongAddress` if no path has metrics.
    """
    page = await pages.read(path)
    for other in OTHER_PATHS:
        if path != other and is_json(page.text):
            page = await pages.read(other)
            path = other if page.is_good else path
    if not page.is_good:
        raise WrongAddress(f"{page.status} at {path}")
    return path, page.text
