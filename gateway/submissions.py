"""`Idempotency-Key`: of all requests that come with the same one, a single one is dispatched.

A request that carries it pays one small transaction in a thread before it is dispatched; others
pay nothing. The second gets 409 and the id of the first, 422 with another body, 503 while the
database cannot tell. The key is free again when nothing can have been charged: no attempt was
dispatched, or every one was refused. Who is not known to have failed so (a client that left, a
worker that died) keeps it until it expires.
"""

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from gateway.errors import RequestError
from gateway.reply import Reply, Send
from ledger.submissions import Asking, free, take
from ledger.tokens import PEPPER_FILE

NAME_LIMIT = 255  # characters, as Stripe has it
REFUSED = 400  # a status that is none of an answer
WAIT_S = 5.0
THREADS = {"sqlite": 1, "postgresql": 4}  # SQLite has one writer: more would only wait in turns
_HOUR_US = 3_600_000_000

log = logging.getLogger("breakeven.submissions")


@dataclass(frozen=True, slots=True)
class Sent:
    """What a request came with: `once` is its `Idempotency-Key`."""

    once: bytes
    key_id: str
    path: str
    body: bytes


class Submissions:
    """One per worker. Connections and threads are made with the first request that needs them."""

    def __init__(
        self,
        open_engine: Callable[[], Engine],
        state_dir: Path,
        *,
        hours: float,
        wall_us: Callable[[], int],
    ) -> None:
        self._open_engine = open_engine
        self._pepper_path = state_dir / PEPPER_FILE
        self._kept_us = round(hours * _HOUR_US)
        self._wall_us = wall_us

    async def first(self, sent: Sent, reply: Reply, answer: Callable[[], Awaitable[None]]) -> None:
        """Run `answer`, which answers on `reply`, for the first of its kind only."""
        name = _name(sent.once)
        asking = await self._taken(sent, name, reply.request_id)

        answering = True

        def freeing(send: Send) -> Send:
            async def sending(message: MutableMapping[str, Any]) -> None:
                # A target's own refusal: who has heard of it may ask anew at once.
                if answering and not reply.charged and message.get("status", 0) >= REFUSED:
                    await self._freed(asking)
                await send(message)

            return sending

        reply.through(freeing)
        try:
            await answer()
        except RequestError:
            if not reply.charged:
                await self._freed(asking)
            raise
        finally:
            answering = False

    async def aclose(self) -> None:
        if "_threads" in self.__dict__:
            await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
            self._engine.dispose()

    @cached_property
    def _engine(self) -> Engine:
        return self._open_engine()

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        count = THREADS[self._engine.dialect.name]
        return ThreadPoolExecutor(count, thread_name_prefix="submissions")

    @cached_property
    def _pepper(self) -> bytes:
        return self._pepper_path.read_bytes()

    async def _taken(self, sent: Sent, name: str, request_id: str) -> Asking:
        job = self._threads.submit(self._take, sent, name, request_id)
        try:
            async with asyncio.timeout(WAIT_S):
                mine, first = await asyncio.wrap_future(job)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            job.add_done_callback(self._given_back)
            raise RequestError(
                "unavailable",
                "The `Idempotency-Key` cannot be checked now. Try again, or leave it out.",
                retry_after_s=1.0,
            ) from error
        except asyncio.CancelledError:
            job.add_done_callback(self._given_back)
            raise
        if mine.request_id != first.request_id:
            raise _second(mine, first)
        return mine

    def _take(self, sent: Sent, name: str, request_id: str) -> tuple[Asking, Asking]:
        """In a thread: the request as it asks, and the one that the key stands for."""
        text = sent.path.encode() + b"\0" + sent.body
        digest = hmac.digest(self._pepper, text, "sha256")
        mine, now_us = Asking(sent.key_id, name, digest, request_id), self._wall_us()
        first = take(self._engine, mine, now_us=now_us, expires_us=now_us + self._kept_us)
        return mine, first

    async def _freed(self, asking: Asking) -> None:
        """A key that cannot be given back now stays taken: that is the safe side."""
        try:
            async with asyncio.timeout(WAIT_S):
                await asyncio.wrap_future(self._threads.submit(free, self._engine, asking))
        except (SQLAlchemyError, OSError, TimeoutError):
            log.warning("an idempotency key of %s stays taken: the ledger is away", asking.key_id)

    def _given_back(self, job: "Future[tuple[Asking, Asking]]") -> None:
        """In the thread that took it, when nobody waits for it any more and nothing is sent."""
        if job.cancelled() or job.exception() is not None:
            return
        mine, first = job.result()
        if mine.request_id == first.request_id:
            try:
                free(self._engine, mine)
            except (SQLAlchemyError, OSError):
                log.warning("an idempotency key of %s stays taken: the ledger is away", mine.key_id)


def _name(once: bytes) -> str:
    name = once.decode("latin-1").strip()
    if not name or len(name) > NAME_LIMIT or not (name.isascii() and name.isprintable()):
        raise RequestError(
            "bad_request",
            f"`Idempotency-Key` must be 1 to {NAME_LIMIT} printable ASCII characters.",
            param="Idempotency-Key",
        )
    return name


def _second(mine: Asking, first: Asking) -> RequestError:
    if not hmac.compare_digest(mine.digest, first.digest):
        return RequestError(
            "reused_key",
            f"This `Idempotency-Key` stands for another body, of request `{first.request_id}`. "
            "Send a new key with a new request.",
            param="Idempotency-Key",
            retry=False,
        )
    return RequestError(
        "duplicate_request",
        f"This `Idempotency-Key` stands for request `{first.request_id}`, which is in work or was "
        "answered; its answer is not sent twice. Send a new key to ask once more.",
        param="Idempotency-Key",
        retry=False,
    )
