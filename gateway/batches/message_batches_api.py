"""`/v1/messages/batches`: Anthropic's batches, kept and run as those of `/v1/batches` are.

Another team's batch is not there. The requests come in one body and are checked before any is
taken: a batch whose request names no model would fail as a whole later.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from gateway.batches import message_shapes as shapes
from gateway.batches.batch_database import BatchDatabase
from gateway.batches.files_api import DAY_US, UploadSlots
from gateway.batches.inputlines import CUSTOM_ID_LIMIT, InputLines
from gateway.batches.uploads import PURPOSE, storage_full
from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.control.access import caller_of
from gateway.control.storable_text import Text, check_storable
from gateway.errors import RequestError
from gateway.ids import BatchIds
from gateway.kinds.openapi_schemas import MODEL
from ledger.batches.files import CHUNK_BYTES, PROCESSED, FileRecord
from ledger.batches.store import BatchRecord
from ledger.identity.keys import Identity

BODY_LIMIT = 32 * 1024 * 1024  # it is held whole while it is read
AT_ONCE, TEAM_AT_ONCE = 4, 2
LISTED, LISTED_MOST = 20, 1000
WINDOW_US = 24 * 3600 * 1_000_000
JSON_LINES = "application/x-jsonl"

_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["requests"],
                    "properties": {
                        "requests": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "type": "object",
                                "required": ["custom_id", "params"],
                                "properties": {
                                    "custom_id": {
                                        "type": "string",
                                        "minLength": 1,
                                        "maxLength": CUSTOM_ID_LIMIT,
                                        "pattern": "^[^\\x00]*$",
                                    },
                                    "params": {
                                        "type": "object",
                                        "required": ["model"],
                                        "properties": {
                                            "model": MODEL,
                                            "stream": {"enum": [False, None]},
                                        },
                                    },
                                },
                            },
                        }
                    },
                }
            }
        },
    }
}


class MessageBatches:
    """What the routes do. `known`: whether a model of this name is served."""

    def __init__(
        self,
        stored: BatchDatabase,
        settings: Settings,
        clock: Clock,
        known: Callable[[str], bool],
        on_made: Callable[[], None],
    ) -> None:
        self._stored = stored
        self._limits = settings.batches
        self._line_bytes = settings.server.body_limit_bytes
        self._patience_s = settings.server.timeouts.receive_s
        self._clock = clock
        self._known = known
        self._on_made = on_made
        self._slots = UploadSlots(AT_ONCE, TEAM_AT_ONCE)
        self._new_id = BatchIds()

    async def create(self, request: Request) -> dict[str, Any]:
        identity = caller_of(request)
        with self._slots.reserve_slot(identity.team_id):
            text = await _read_body(request, self._patience_s)
            lines = await asyncio.to_thread(self._read_lines, text)
            file_id = await self._store_file(identity, lines)
        now_us = self._clock.wall_us()
        record = BatchRecord(
            id=self._new_id(shapes.PREFIX),
            team_id=identity.team_id,
            key_id=identity.key_id,
            endpoint=shapes.ENDPOINT,
            completion_window="24h",
            input_file_id=file_id,
            created_us=now_us,
            expires_us=now_us + WINDOW_US,
            total=len(lines),
        )
        most = self._limits.team_batches
        if not await self._stored.call(self._stored.batches.create, record, most=most):
            await self._stored.call(self._stored.files.drop, file_id)
            message = f"The team has {most} unfinished batches, and may have no more: wait for one."
            raise RequestError("too_many_batches", message)
        self._on_made()
        return shapes.message_batch(record, 0)

    async def find(self, batch_id: str, identity: Identity) -> BatchRecord:
        plain = batch_id.startswith(shapes.PREFIX) and batch_id.isascii() and batch_id.isprintable()
        find = self._stored.batches.find
        record = await self._stored.call(find, batch_id, identity.team_id) if plain else None
        if record is None:
            raise RequestError("no_batch", f"The batch `{batch_id[:64]}` does not exist.")
        return record

    async def show(self, record: BatchRecord) -> dict[str, Any]:
        if not shapes.was_cut_short(record):
            return shapes.message_batch(record, 0)
        unanswered = record.total - record.completed - record.failed  # had no line yet
        if record.error_file_id is not None:
            async with aclosing(self._lines(record.error_file_id)) as lines:
                async for line in lines:
                    unanswered += shapes.is_unanswered(line)
        return shapes.message_batch(record, unanswered)

    async def list_batches(
        self, identity: Identity, after: str | None, before: str | None, limit: int
    ) -> dict[str, Any]:
        found = await self._stored.call(
            self._stored.batches.list_batches, identity.team_id, prefix=shapes.PREFIX,
            after=after, before=before, limit=limit + 1,
        )  # fmt: skip
        # Of a page before another one, the one that is too many is the newest.
        page = found[-limit:] if before is not None else found[:limit]
        shown = [await self.show(record) for record in page]
        return shapes.batch_page(shown, more=len(found) > limit)

    async def cancel(self, batch_id: str, identity: Identity) -> dict[str, Any]:
        record = await self.find(batch_id, identity)
        now_us, cancel = self._clock.wall_us(), self._stored.batches.cancel
        done = await self._stored.call(cancel, batch_id, identity.team_id, now_us)
        record = await self.find(batch_id, identity)
        if not done and record.cancelling_us is None:
            raise RequestError("bad_request", "The batch has ended and cannot be canceled.")
        return await self.show(record)

    async def delete(self, batch_id: str, identity: Identity) -> dict[str, Any]:
        record = await self.find(batch_id, identity)
        if not shapes.is_ended(record):
            message = "The batch has not ended. Cancel it, and delete it once it has ended."
            raise RequestError("bad_request", message)
        await self._stored.call(self._stored.batches.delete, batch_id, identity.team_id)
        return {"id": batch_id, "type": "message_batch_deleted"}

    async def results(self, batch_id: str, identity: Identity) -> AsyncIterator[bytes]:
        record = await self.find(batch_id, identity)
        if not shapes.is_ended(record):
            raise RequestError("bad_request", "The batch has not ended: it has no results yet.")
        return self._results(record)

    async def _results(self, record: BatchRecord) -> AsyncIterator[bytes]:
        if record.output_file_id is None and record.error_file_id is None:
            async for line in self._lines(record.input_file_id):
                yield shapes.unread_line(line, record)
        for file_id in (record.output_file_id, record.error_file_id):
            if file_id is not None:
                async for line in self._lines(file_id):
                    yield shapes.result_line(line)

    async def _lines(self, file_id: str) -> AsyncGenerator[bytes, None]:
        """One chunk of the file is held at a time, and the line that it breaks off in."""
        held, number = b"", 0
        while (
            data := await self._stored.call(self._stored.files.chunk, file_id, number)
        ) is not None:
            *whole, held = (held + data).split(b"\n")
            for line in whole:
                if line:
                    yield line
            number += 1
        if held:
            yield held

    def _read_lines(self, text: bytes) -> list[bytes]:
        requests = shapes.read_creation(text)
        most = self._limits.lines_limit
        if len(requests) > most:
            message = f"A batch may hold {most} requests; these are {len(requests)}."
            raise RequestError("bad_request", message, param="requests")
        reader = InputLines(shapes.ENDPOINT, self._known)
        return list(shapes.input_lines(requests, reader, line_bytes=self._line_bytes))

    async def _store_file(self, identity: Identity, lines: list[bytes]) -> str:
        """Return the id of the input file; where it does not fit, nothing of it is left."""
        now_us, files = self._clock.wall_us(), self._stored.files
        record = FileRecord(
            self._new_id("file-"), identity.team_id, identity.key_id, PURPOSE,
            "message_batch.jsonl", created_us=now_us,
            expires_us=now_us + self._limits.keep_days * DAY_US,
        )  # fmt: skip
        text = b"".join(lines)
        await self._stored.call(files.create, record)
        try:
            await self._append(record.id, text)
            whole = replace(record, bytes=len(text), status=PROCESSED)
            await self._stored.call(files.finish, whole)
        except BaseException:
            await asyncio.shield(self._stored.call(files.drop, record.id))
            raise
        return record.id

    async def _append(self, file_id: str, text: bytes) -> None:
        most = self._limits.team_limit_bytes
        for number, start in enumerate(range(0, len(text), CHUNK_BYTES)):
            chunk = text[start : start + CHUNK_BYTES]
            append = self._stored.files.append
            if not await self._stored.call(append, file_id, number, chunk, team_limit_bytes=most):
                raise storage_full(most)


def message_batches_router(batches: MessageBatches) -> APIRouter:
    router = APIRouter(prefix=shapes.PATH, tags=["batches"])

    @router.post("", summary="Make a batch of messages", openapi_extra=_BODY)
    async def create(request: Request) -> dict[str, Any]:
        return await batches.create(request)

    @router.get("", summary="The team's batches of messages, the newest first")
    async def listed(
        request: Request,
        after_id: Text = None,
        before_id: Text = None,
        limit: Annotated[int, Query(ge=1, le=LISTED_MOST)] = LISTED,
    ) -> dict[str, Any]:
        after, before = check_storable("after_id", after_id), check_storable("before_id", before_id)
        return await batches.list_batches(caller_of(request), after, before, limit)

    @router.get("/{batch_id}", summary="One batch of messages")
    async def retrieve(batch_id: str, request: Request) -> dict[str, Any]:
        return await batches.show(await batches.find(batch_id, caller_of(request)))

    @router.get(
        "/{batch_id}/results",
        summary="What came of each request of a batch that has ended",
        response_class=StreamingResponse,
        responses={200: {"content": {JSON_LINES: {}}}},
    )
    async def results(batch_id: str, request: Request) -> StreamingResponse:
        lines = await batches.results(batch_id, caller_of(request))
        return StreamingResponse(lines, media_type=JSON_LINES)

    @router.post("/{batch_id}/cancel", summary="Cancel a batch of messages; what is answered stays")
    async def cancel(batch_id: str, request: Request) -> dict[str, Any]:
        return await batches.cancel(batch_id, caller_of(request))

    @router.delete("/{batch_id}", summary="Delete a batch of messages that has ended")
    async def delete(batch_id: str, request: Request) -> dict[str, Any]:
        return await batches.delete(batch_id, caller_of(request))

    return router


async def _read_body(request: Request, patience_s: float) -> bytes:
    """The whole body within the limit; each piece has the receive deadline."""
    parts: list[bytes] = []
    size = 0
    stream = request.stream()
    try:
        while True:
            async with asyncio.timeout(patience_s):
                part = await anext(stream, b"")
            if not part:
                return b"".join(parts)
            size += len(part)
            if size > BODY_LIMIT:
                message = f"The body is larger than {BODY_LIMIT} bytes: make several batches."
                raise RequestError("too_large", message, param="requests")
            parts.append(part)
    except TimeoutError as error:
        raise RequestError("slow_client", "The request body did not arrive in time.") from error
    except ClientDisconnect as error:
        raise RequestError("bad_request", "The client hung up before its body ended.") from error
