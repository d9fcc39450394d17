"""`Idempotency-Key`: of all requests with the same key, one is dispatched.

Such a request costs a small transaction in a thread before dispatch, and another where answers are
stored; other requests cost nothing. A repeated request gets the first one's stored answer, else 409
with the first id, 422 with another body, 503 while the database is unavailable. The key is freed if
nothing can have been charged: no attempt was dispatched, or all were refused. Otherwise (the client
disconnected, a worker died) it stays taken until it expires.
"""

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from gateway.errors import RequestError
from gateway.request.client_response import ClientResponse, Send
from gateway.request.idempotency.response_replay import (
    ResponseReplayStore,
    StoredResponse,
    mark_replayed,
)
from ledger.idempotency import IdempotencyRecord, claim_key, free_key
from ledger.identity.tokens import PEPPER_FILE

NAME_LIMIT = 255  # characters, as at Stripe
REFUSED = 400  # lowest status that is no answer
WAIT_S = 5.0
KEEP_WAIT_S = 2.0  # a whole answer waits no longer for being stored
THREADS = {"sqlite": 1, "postgresql": 4}  # SQLite has one writer, so more threads would only wait
NEVER_KEPT = "which is running or has ended; its answer is not sent twice"
NOT_KEPT = "which is in work, or whose answer was not kept"
_HOUR_US = 3_600_000_000

log = logging.getLogger("breakeven.submissions")


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request's idempotency data: `once` is its `Idempotency-Key`."""

    once: bytes
    key_id: str
    path: str
    body: bytes


class IdempotencyClaim(NamedTuple):
    """A claim: `mine` is this request, `first` the owner of the key until `until_us`.

    `answer` is the stored answer of the first request, if this one repeats it.
    """

    mine: IdempotencyRecord
    first: IdempotencyRecord
    until_us: int
    answer: StoredResponse | None = None


class IdempotencyStore:
    """The idempotency keys of one worker; connections and threads open on first use."""

    def __init__(
        self,
        open_engine: Callable[[], Engine],
        state_dir: Path,
        *,
        hours: float,
        wall_us: Callable[[], int],
        kept: ResponseReplayStore | None = None,
    ) -> None:
        """Create the store; `kept` is the store of answers to replay, if any."""
        self._open_engine = open_engine
        self._pepper_path = state_dir / PEPPER_FILE
        self._kept_us = round(hours * _HOUR_US)
        self._wall_us = wall_us
        self._kept = kept

    async def run_first(
        self, sent: IdempotentRequest, reply: ClientResponse, answer: Callable[[], Awaitable[None]]
    ) -> None:
        """Run `answer`, which answers on `reply`, for the first request of its key only."""
        name = name_of(sent.once)
        taken = await self._claim_key(sent, name, reply.request_id)
        if taken.answer is not None:
            await reply.replay(taken.answer.status, taken.answer.headers, taken.answer.body)
            return
        hearing = None if self._kept is None else self._kept.listen()
        answering = True

        def passing(send: Send) -> Send:
            async def sending(message: MutableMapping[str, Any]) -> None:
                # A target's own refusal: its client may retry at once.
                if answering and not reply.charged and message.get("status", 0) >= REFUSED:
                    await self._free_key(taken.mine)
                if answering and not reply.broken and hearing is not None:
                    whole = hearing.receive_message(message)
                    if whole is not None:  # stored before its end is sent
                        await self._keep(taken, whole)
                await send(message)

            return sending

        reply.wrap_send(passing)
        try:
            await answer()
        except RequestError:
            if not reply.charged:
                await self._free_key(taken.mine)
            raise
        finally:
            answering = False
            if hearing is not None:
                hearing.close()

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

    async def _claim_key(
        self, sent: IdempotentRequest, name: str, request_id: str
    ) -> IdempotencyClaim:
        """Claim the key, or find a stored answer. Raises `RequestError` for any other case."""
        job = self._threads.submit(self._claim_in_thread, sent, name, request_id)
        try:
            async with asyncio.timeout(WAIT_S):
                taken = await asyncio.wrap_future(job)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            job.add_done_callback(self._free_unused)
            raise RequestError(
                "unavailable",
                "The `Idempotency-Key` cannot be checked now. Retry the request, or leave "
                "the key out.",
                retry_after_s=1.0,
            ) from error
        except asyncio.CancelledError:
            job.add_done_callback(self._free_unused)
            raise
        if taken.mine.request_id != taken.first.request_id and taken.answer is None:
            raise _second(taken, NEVER_KEPT if self._kept is None else NOT_KEPT)
        return taken

    def _claim_in_thread(
        self, sent: IdempotentRequest, name: str, request_id: str
    ) -> IdempotencyClaim:
        """Claim the key; runs in a thread."""
        text = sent.path.encode() + b"\0" + sent.body
        digest = hmac.digest(self._pepper, text, "sha256")
        mine, now_us = IdempotencyRecord(sent.key_id, name, digest, request_id), self._wall_us()
        until_us = now_us + self._kept_us
        first = claim_key(self._engine, mine, now_us=now_us, expires_us=until_us)
        answer = None
        if self._kept is not None and first.request_id != request_id and _same(mine, first):
            answer = self._kept.find(self._engine, first)
        return IdempotencyClaim(
            mine, first, until_us, None if answer is None else mark_replayed(answer)
        )

    async def _keep(self, taken: IdempotencyClaim, answer: StoredResponse) -> None:
        """Store an answer; if that fails, it is sent all the same."""
        assert self._kept is not None
        keep = partial(self._kept.store, self._engine, taken.mine, answer, until_us=taken.until_us)
        try:
            async with asyncio.timeout(KEEP_WAIT_S):
                await asyncio.wrap_future(self._threads.submit(keep))
        except (SQLAlchemyError, OSError, TimeoutError):
            log.warning(
                "an answer was not stored for replay: cannot reach the ledger key=%s",
                taken.mine.key_id,
            )

    async def _free_key(self, asking: IdempotencyRecord) -> None:
        """Free the key; if that fails, it stays taken, which is the safe side."""
        try:
            async with asyncio.timeout(WAIT_S):
                await asyncio.wrap_future(self._threads.submit(free_key, self._engine, asking))
        except (SQLAlchemyError, OSError, TimeoutError):
            log.warning(
                "an idempotency key was not released: cannot reach the ledger key=%s", asking.key_id
            )

    def _free_unused(self, job: "Future[IdempotencyClaim]") -> None:
        """Free a key whose request gave up waiting; runs in the thread that claimed it."""
        if job.cancelled() or job.exception() is not None:
            return
        mine, first = job.result()[:2]
        if mine.request_id == first.request_id:
            try:
                free_key(self._engine, mine)
            except (SQLAlchemyError, OSError):
                log.warning(
                    "an idempotency key was not released: cannot reach the ledger key=%s",
                    mine.key_id,
                )


def name_of(once: bytes) -> str:
    """Return an `Idempotency-Key` as stored. Raises `RequestError` 400 if malformed."""
    name = once.decode("latin-1").strip()
    if not name or len(name) > NAME_LIMIT or not (name.isascii() and name.isprintable()):
        raise RequestError(
            "bad_request",
            f"`Idempotency-Key` must be 1 to {NAME_LIMIT} printable ASCII characters.",
            param="Idempotency-Key",
        )
    return name


def _same(mine: IdempotencyRecord, first: IdempotencyRecord) -> bool:
    return hmac.compare_digest(mine.digest, first.digest)


def _second(taken: IdempotencyClaim, why: str) -> RequestError:
    first = taken.first.request_id
    if not _same(taken.mine, taken.first):
        return reused_key_error(f"request `{first}`")
    return RequestError(
        "duplicate_request",
        f"This `Idempotency-Key` belongs to request `{first}`, {why}. Send a new key to repeat the "
        "request.",
        param="Idempotency-Key",
        retry=False,
    )


def reused_key_error(first: str) -> RequestError:
    """Return the 422 for another body under a used key; `first` describes the first request."""
    return RequestError(
        "reused_key",
        f"This `Idempotency-Key` belongs to {first}, which had another body. Send a new key with a "
        "new request.",
        param="Idempotency-Key",
        retry=False,
    )
