"""Bounded reading of an answer to its end: in chunks, whole, or discarded.

An answer that is dropped before its end costs its connection, so a few milliseconds of waiting for
the terminator after `[DONE]` save the next request a handshake.
"""

import asyncio
from collections.abc import Callable

from backends.base import Exchange, Sink
from backends.errors import BackendError, IdleTimeout, UpstreamBroken
from backends.http_connection import HttpExchange


async def pour_exchange(exchange: Exchange, sink: Sink) -> bool:
    """Pass each chunk to `sink` on arrival. Return true at the end, false once `sink` stops."""
    if isinstance(exchange, HttpExchange):
        return await exchange.pour(sink)
    async for piece in exchange:
        if not sink(piece):
            return False
    return True


async def read_all(
    exchange: Exchange,
    limit_bytes: int,
    *,
    timeout_s: float | None = None,
    check: Callable[[int], None] | None = None,
) -> bytes:
    """Return the whole body. Above the limit or timeout, the answer is aborted.

    `check` is called with the size so far and may raise a `BackendError`.
    """
    whole = exchange.take_whole() if isinstance(exchange, HttpExchange) else None
    if whole is not None and len(whole) <= limit_bytes:  # as usual, it came with its head
        return whole
    try:
        if timeout_s is None:  # the exchange has deadlines of its own; another one costs
            return await _join_parts(exchange, limit_bytes, check)
        async with asyncio.timeout(timeout_s):
            return await _join_parts(exchange, limit_bytes, check)
    except TimeoutError:
        raise IdleTimeout(f"the answer took longer than {timeout_s} s") from None
    finally:
        await exchange.aclose()


async def _join_parts(
    exchange: Exchange, limit_bytes: int, check: Callable[[int], None] | None
) -> bytes:
    parts, size = [], 0
    async for part in exchange:
        parts.append(part)
        size += len(part)
        if size > limit_bytes:
            raise UpstreamBroken(f"the answer is larger than {limit_bytes} bytes")
        if check is not None:
            check(size)
    return b"".join(parts)


def _ignore(_piece: bytes) -> None:
    """Discard a chunk."""


async def drain_exchange(
    exchange: Exchange,
    take: Callable[[bytes], None] = _ignore,
    *,
    grace_s: float = 0.05,
    limit_bytes: int = 65536,
) -> None:
    """Let a finished answer end by its framing, or close it after the grace period.

    `take` receives further bytes. Usually the terminator came with the last chunk, and there is no
    wait.
    """
    if isinstance(exchange, HttpExchange) and exchange.is_ended:
        take(exchange.take_whole() or b"")
        await exchange.aclose()
        return
    size = 0
    try:
        async with asyncio.timeout(grace_s):
            async for part in exchange:
                size += len(part)
                if size > limit_bytes:
                    break
                take(part)
    except (TimeoutError, BackendError):
        pass
    finally:
        await exchange.aclose()
