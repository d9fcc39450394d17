"""Ids of requests, files and batches: unique across hosts, sortable by creation time."""

import itertools
import secrets
import time
from collections.abc import Callable


class RequestIds:
    """Generator of request ids.

    An id is `req_`, 48 bits of milliseconds, a random prefix drawn once per process and a counter.
    """

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(5)
        self._count = itertools.count()

    def __call__(self) -> str:
        return f"req_{time.time_ns() // 1_000_000:012x}{self._prefix}{next(self._count):06x}"


class BatchIds:
    """Generator of ids with a prefix such as `file-`.

    An id is the prefix, 48 bits of milliseconds and 64 random bits.
    """

    def __init__(
        self,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        new_hex: Callable[[int], str] = secrets.token_hex,
    ) -> None:
        self._now_ms = now_ms
        self._new_hex = new_hex

    def __call__(self, prefix: str) -> str:
        return f"{prefix}{self._now_ms():012x}{self._new_hex(8)}"
