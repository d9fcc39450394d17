"""An engine's metrics page, read within bounds of bytes and time."""

import asyncio

import httpx

from backends.engine.bounded import PAGE_BYTES, PAGE_S
from backends.metrics import ProbeFailed


async def read_page(client: httpx.AsyncClient, url: str) -> tuple[httpx.Response, str]:
    """Return the answer and its text; a page that never ends must not stop telemetry.

    Raises `ProbeFailed` for a page that is too large, `TimeoutError` for one that takes too long.
    """
    body = bytearray()
    async with asyncio.timeout(PAGE_S), client.stream("GET", url) as answer:
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > PAGE_BYTES:
                raise ProbeFailed(f"its metrics page is larger than {PAGE_BYTES:,} bytes")
    return answer, body.decode("utf-8", "replace")
