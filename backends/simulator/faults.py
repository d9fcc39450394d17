"""Faults that a simulated provider injects on request, for tests of their handling.

    POST /_faults {"fault": "status", "status": 500, "times": 3}
    POST /_faults {"fault": "status", "status": 429, "retry_after_s": 2}
    POST /_faults {"fault": "stall", "after_tokens": 5}     the stream stops sending
    POST /_faults {"fault": "cut", "after_tokens": 5}       the connection ends mid-answer
    DELETE /_faults                                         removes all faults

Each fault affects the next `times` requests (default 1), in the order of the calls.
"""

from collections import deque
from typing import Any, Literal

import msgspec

FAULTS_LIMIT = 1000


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fault: Literal["status", "stall", "cut"]
    status: int = 500
    retry_after_s: float | None = None
    after_tokens: int = 0
    times: int = 1


class Faults:
    def __init__(self) -> None:
        self._queue: deque[Fault] = deque()

    def add(self, body: bytes) -> dict[str, Any]:
        """Queue the fault of the body. Raises `msgspec.ValidationError` with the reason."""
        fault = msgspec.json.decode(body, type=Fault)
        if not 1 <= fault.times <= FAULTS_LIMIT - len(self._queue):
            raise msgspec.ValidationError(f"`times` must leave at most {FAULTS_LIMIT} queued")
        self._queue.extend([fault] * fault.times)
        return {"queued": len(self._queue)}

    def next(self) -> Fault | None:
        return self._queue.popleft() if self._queue else None

    def clear(self) -> None:
        self._queue.clear()
