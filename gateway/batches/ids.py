"""Ids of files and batches: unique across hosts, and in the order in which they were made."""

import secrets
import time
from collections.abc import Callable


class BatchIds:
    """`new_id("file-")`: 48 bits of milliseconds, then 64 random ones."""

    def __init__(
        self,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        new_hex: Callable[[int], str] = secrets.token_hex,
    ) -> None:
        self._now_ms = now_ms
        self._new_hex = new_hex

    def __call__(self, prefix: str) -> str:
        return f"{prefix}{self._now_ms():012x}{self._new_hex(8)}"
