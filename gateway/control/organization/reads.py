"""Reads of the ledger for HTTP answers, in separate threads, few at once, time-limited.

Nothing here runs on the event loop or shares a thread with key lookups. A read waits if all threads
are busy; if too many wait, the next one gets 503 at once.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from gateway.errors import RequestError
from ledger.database import is_unavailable, limit_time, snapshot

AT_ONCE = 2
WAITING = 8
LIMIT_S = 30.0
RETRY_S = 2.0
T = TypeVar("T")


class LedgerReads:
    """Reader of the ledger for one worker. `engine` is read-only."""

    def __init__(
        self,
        engine: Engine,
        *,
        limit_s: float = LIMIT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._limit_s = limit_s
        self._clock = clock
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="ledger-read")
        self._taken = 0
        self._closing = False

    async def run(self, read: Callable[[Connection], T]) -> T:
        """Return `read` applied to one snapshot of the ledger. Raises `RequestError`."""
        if self._taken >= AT_ONCE + WAITING:
            raise RequestError(
                "overloaded",
                f"Too many usage queries are waiting. Retry in {RETRY_S:g} s.",
                retry_after_s=RETRY_S,
            )
        self._taken += 1
        work = asyncio.get_running_loop().run_in_executor(self._threads, self._read, read)
        work.add_done_callback(self._release_slot)  # the thread goes on when its client has left
        return await work

    def close(self) -> None:
        """End running reads: SQLite at once, PostgreSQL at its own limit."""
        self._closing = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _release_slot(self, _: asyncio.Future[T]) -> None:
        self._taken -= 1

    def _read(self, read: Callable[[Connection], T]) -> T:
        end_s = self._clock() + self._limit_s
        try:
            with snapshot(self._engine) as connection:
                limit_time(
                    connection, self._limit_s, lambda: self._closing or self._clock() >= end_s
                )
                return read(connection)
        except DBAPIError as error:
            if self._clock() >= end_s:
                message = f"This took longer than {self._limit_s:g} s. Ask for a shorter time."
                raise RequestError("timeout", message, retry=False) from error
            if not is_unavailable(error):
                raise
            message = f"The ledger does not respond. Retry in {RETRY_S:g} s."
            raise RequestError("unavailable", message, retry_after_s=RETRY_S) from error
