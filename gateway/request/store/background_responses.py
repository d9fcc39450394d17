"""Background responses: generated after the client was answered, or after it left.

A response has a row before its client learns of it. The worker that generates it renews the row's
lease; an expired lease means that the worker died. Any host can end a response through its row.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from gateway.errors import RequestError
from gateway.http.body import encode
from gateway.request.client_response import CANCELLED, JSON, ClientResponse
from gateway.request.dialects.answer_keeper import BackgroundKeeper, KeptAnswer
from gateway.request.dialects.response_encoder import ResponseEncoder
from gateway.request.dialects.translated_response import TranslatedResponse
from gateway.request.store.object_store import ObjectStore
from gateway.request.store.response_keeper import LEASE_US

LOOK_S: Final = 1.0  # interval of checks for responses to end
RETRY_S: Final = 1.0
RETRIES: Final = 300  # of storing an answer while the database is unavailable
AWAY: Final = "unavailable"
ENDED: Final = "The gateway's worker ended before the answer was made."
TOO_LATE: Final = "The request took too long."
# Codes of a failed response, by error type. Other failures may be
# temporary.
_FAILED: Final = "server_error"
_CODES: Final = {
    "invalid_request_error": "invalid_prompt",
    "rate_limit_error": "rate_limit_exceeded",
    "insufficient_quota": "insufficient_quota",
}

log = logging.getLogger("breakeven.background")

Dispatch = Callable[[TranslatedResponse], Awaitable[None]]


class BackgroundResponses:
    """The background responses of one worker."""

    def __init__(self, store: ObjectStore, most: int, open_replies: set[ClientResponse]) -> None:
        """Create it; `open_replies` is the set of responses that the worker counts and sweeps."""
        self._store = store
        self._most = most
        self._open = open_replies
        self._made: dict[str, TranslatedResponse] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self, reply: TranslatedResponse, *, stream: bool, dispatch: Dispatch) -> None:
        """Store the queued response, answer the client, and generate the answer.

        Raises `RequestError` if it cannot be stored, before anything is dispatched.
        """
        keeper, voice = reply.keeper, reply.voice
        assert isinstance(keeper, BackgroundKeeper)
        assert voice is not None
        if len(self._made) >= self._most:
            message = f"This worker makes {self._most} background responses already."
            raise RequestError("overloaded", message, retry_after_s=5.0)
        queued = voice.state_document("in_progress" if stream else "queued")
        refusal = await keeper.store(queued, keeper.residency)
        if refusal is not None:
            message = f"A background response must be stored, and cannot be: {refusal}."
            raise RequestError("unavailable", message, retry_after_s=1.0)
        if stream:
            reply.detached = True
            voice.note_events()
            await self._make(reply, keeper, dispatch)
            return
        started = asyncio.Event()
        work = self._make_detached(reply, keeper, dispatch, started)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await started.wait()  # from here on the task has the answer's encoder and keeper
        await reply.send_whole(200, [JSON], encode(queued))

    async def watch(self) -> None:
        """Run until cancelled: renew leases, and end cancelled responses."""
        while True:
            await asyncio.sleep(LOOK_S)
            if self._made:
                await self._look()

    async def end_all(self) -> None:
        """End all responses of this worker, which is stopping."""
        for reply in tuple(self._made.values()):
            reply.end("drain")
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=RETRY_S)

    async def _look(self) -> None:
        lease_us = self._store.wall_us() + LEASE_US
        try:
            ended = await self._store.renew_leases(list(self._made), lease_us=lease_us)
        except RequestError:
            return  # generation continues: the database may return before the lease ends
        for name in ended & self._made.keys():
            self._made[name].end(CANCELLED)

    async def _make_detached(
        self,
        earlier: TranslatedResponse,
        keeper: BackgroundKeeper,
        dispatch: Dispatch,
        started: asyncio.Event,
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        reply = earlier.detached_copy(_send_to_nobody, task)
        started.set()
        self._open.add(reply)
        try:
            await self._make(reply, keeper, dispatch)
        except RequestError:
            pass  # its row has the error
        except asyncio.CancelledError:
            if reply.ended_by is None:
                raise
        except Exception:  # the outermost handler of this task
            log.exception("background request failed request=%s", reply.request_id)
        finally:
            self._open.discard(reply)
            reply.detach()

    async def _make(
        self, reply: TranslatedResponse, keeper: BackgroundKeeper, dispatch: Dispatch
    ) -> None:
        voice = reply.voice
        assert voice is not None
        name = str(voice.state_document("queued")["id"])
        reply.keeper = _PatientKeeper(keeper, voice)
        self._made[name] = reply
        end: dict[str, Any] | None = voice.state_document("failed", "The gateway failed.")
        try:
            await dispatch(reply)
            _stop_cancelled(reply)
            end = None
            if reply.kept:
                pass
            elif reply.refusal is not None:
                end = voice.state_document("failed", *_told_by(reply.refusal))
            elif voice.failed:
                end = voice.state_document("failed", "The answer broke off.")
        except RequestError as error:
            code = _CODES.get(error.row.type, _FAILED)
            end = voice.state_document("failed", error.message, code)
            raise
        except asyncio.CancelledError:
            if reply.ended_by == CANCELLED:
                end = voice.state_document(CANCELLED)
            else:
                end = voice.state_document(
                    "failed", TOO_LATE if reply.ended_by == "total" else ENDED
                )
            raise
        finally:
            del self._made[name]
            if end is not None:
                await asyncio.shield(keeper.store(end, reply.residency))


class _PatientKeeper:
    """A keeper that retries while the database is away, as no client waits for it."""

    def __init__(self, keeper: BackgroundKeeper, voice: ResponseEncoder) -> None:
        self._keeper = keeper
        self._voice = voice
        self.residency = keeper.residency
        self.background = True
        self.own_members = keeper.own_members
        self.withhold, self.allow = keeper.withhold, keeper.allow

    async def keep(self, document: Any, residency: Any) -> KeptAnswer:
        """Store the whole answer as soon as that is possible, with up to `RETRIES` retries."""
        self._keeper.told = self._voice.noted_events
        for _ in range(RETRIES):
            kept = await self._keeper.keep(document, residency)
            if kept.refusal != AWAY:
                return kept
            await asyncio.sleep(RETRY_S)
        return kept


def _stop_cancelled(reply: TranslatedResponse) -> None:
    """End the task of a cancelled answer, which was read to its end for its usage."""
    if reply.ended_by == CANCELLED:
        raise asyncio.CancelledError


def _told_by(refusal: bytes) -> tuple[str, str]:
    """Return a refusal's message and code; clients retry failures of the target."""
    try:
        error = msgspec.json.decode(refusal)["error"]
        return str(error["message"]), _CODES.get(str(error.get("type")), _FAILED)
    except (msgspec.MsgspecError, AttributeError, KeyError, TypeError):
        return "The target refused the request.", _FAILED


async def _send_to_nobody(_: Any) -> None:
    """Drop the message: the client was answered already."""
