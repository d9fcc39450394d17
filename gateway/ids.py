"""Request ids: unique across workers and hosts, ordered by time, made without a lock.

`req_` + 48 bits of milliseconds + a random prefix drawn once per process + a counter.
"""

import itertools
import secrets
import time


class RequestIds:
    def __init__(self) -> None:
        self._prefix = secrets.token_hex(5)
        self._count = itertools.count()

    def __call__(self) -> str:
        return f"req_{time.time_ns() // 1_000_000:012x}{self._prefix}{next(self._count):06x}"
