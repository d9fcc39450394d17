"""Database access of a worker's file and batch routes, in threads of their own.

Key lookups use the event loop's shared threads, which a slow disk under files must not block.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from gateway.errors import RequestError
from ledger.batches.files import FileStore
from ledger.batches.store import BatchStore
from ledger.idempotency import IdempotencyRecord, claim_key, find_claim, free_key

THREADS = 4
P = ParamSpec("P")
T = TypeVar("T")


class BatchDatabase:
    """Stores of files, batches and idempotency keys for a worker's routes."""

    def __init__(self, engine: Engine) -> None:
        self.files = FileStore(engine)
        self.batches = BatchStore(engine)
        self._engine = engine
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="stored")

    async def call(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Run `work` in a thread.

        Raises `RequestError` (503) while the database is unavailable or locked.
        """
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, partial(work, *given, **named))
        except DBAPIError as error:
            raise RequestError(
                "unavailable", "The database of files and batches does not respond. Retry in 1 s.",
                retry_after_s=1.0,
            ) from error  # fmt: skip

    def claim_key(
        self, asking: IdempotencyRecord, *, now_us: int, expires_us: int
    ) -> IdempotencyRecord:
        """Claim an `Idempotency-Key`. Return `asking`, or the earlier request with the key."""
        return claim_key(self._engine, asking, now_us=now_us, expires_us=expires_us)

    def find_claim(self, key_id: str, name: str, *, now_us: int) -> IdempotencyRecord | None:
        """Return the earlier request with this idempotency key, or `None`."""
        return find_claim(self._engine, key_id, name, now_us=now_us)

    def free_key(self, asking: IdempotencyRecord) -> None:
        free_key(self._engine, asking)

    async def aclose(self) -> None:
        """Close the connections once running calls have returned theirs."""
        await asyncio.to_thread(self._threads.shutdown, wait=True, cancel_futures=True)
        self._engine.dispose()
