"""Routes of `/v1/messages/batches`: Anthropic's batches, run like those of `/v1/batches`.

Batches of other teams answer 404. The requests come in one body. All are checked before the batch
is created, because an invalid one would fail the whole batch later.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from gateway.batches import message_shapes as shapes
from gateway.batches.batch_database import BatchDatabase
from gateway.batches.batch_maker import BatchMaker
from gateway.batches.batches_api import WINDOW, WINDOW_US
from gateway.batches.body_pace import read_json_body
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
from gateway.request.ignored_names import IGNORED, listed_names
from ledger.batches.files import CHUNK_BYTES, PROCESSED, FileRecord
from ledger.batches.store import BatchRecord
from ledger.identity.keys import Identity

BODY_LIMIT = 32 * 1024 * 1024  # the whole body is in memory while it is parsed
AT_ONCE, TEAM_AT_ONCE = 2, 1
LISTED, LISTED_MOST = 20, 1000
JSON_LINES = "application/x-jsonl"
_BETAS = "anthropic-beta"
_OWN_BETA = "message-batches-"  # the beta of these paths before their release
_HOST = re.compile(r"[A-Za-z0-9._\[\]:-]+")
_SUB_PATH = re.compile(r"(?:/[A-Za-z0-9_~][A-Za-z0-9._~-]{0,63}){1,8}")

_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["requests"],
                    "additionalProperties": False,
                    "properties": {
                        "requests": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "type": "object",
                                "required": ["custom_id", "params"],
                                "additionalProperties": False,
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
    """Operations of the routes. `known` returns whether a model of this name is served."""

    def __init__(
        self,
        stored: BatchDatabase,
        settings: Settings,
        clock: Clock,
        maker: BatchMaker,
        known: Callable[[str], bool],
    ) -> None:
        self._stored = stored
        self._limits = settings.batches
        self._line_bytes = settings.server.body_limit_bytes
        self._patience_s = settings.server.timeouts.receive_s
        self._clock = clock
        self._maker = maker
        self._known = known
        self._slots = UploadSlots(AT_ONCE, TEAM_AT_ONCE)
        self._new_id = BatchIds()

    async def create(self, request: Request, response: Response) -> dict[str, Any]:
        identity = caller_of(request)
        _name_betas(request, response)
        with self._slots.reserve_slot(identity.team_id):
            text = await read_json_body(request, limit=BODY_LIMIT, patience_s=self._patience_s)
            lines, total = await asyncio.to_thread(self._read_lines, text)
            record = self._record_of(identity, total)
            claim = await self._maker.claim(request, response, record, text, shapes.PATH)
            if claim.earlier is not None:
                return shapes.message_batch(claim.earlier, _site_of(request))
            await self._store_file(claim.record, lines)
        try:
            await self._maker.store(claim)
        except RequestError:
            await self._stored.call(self._stored.files.drop, record.input_file_id)
            raise
        made = await self.find(claim.record.id, identity)
        if made.input_file_id != record.input_file_id:  # a concurrent request was first
            await self._stored.call(self._stored.files.drop, record.input_file_id)
        return shapes.message_batch(made, _site_of(request))

    def _record_of(self, identity: Identity, total: int) -> BatchRecord:
        now_us = self._clock.wall_us()
        return BatchRecord(
            id=self._new_id(shapes.PREFIX),
            team_id=identity.team_id,
            key_id=identity.key_id,
            endpoint=shapes.ENDPOINT,
            completion_window=WINDOW,
            input_file_id=self._new_id("file-"),
            created_us=now_us,
            expires_us=now_us + WINDOW_US,
            total=total,
        )

    async def find(self, batch_id: str, identity: Identity) -> BatchRecord:
        plain = batch_id.startswith(shapes.PREFIX) and batch_id.isascii() and batch_id.isprintable()
        find = self._stored.batches.find
        record = await self._stored.call(find, batch_id, identity.team_id) if plain else None
        if record is None:
            raise RequestError(
                "no_batch",
                f"The batch `{batch_id[:64]}` does not exist. `GET /v1/messages/batches` "
                "lists all of this team.",
            )
        return record

    async def list_batches(
        self, request: Request, after: str | None, before: str | None, limit: int
    ) -> dict[str, Any]:
        team_id = caller_of(request).team_id
        found = await self._stored.call(
            self._stored.batches.list_batches, team_id, prefix=shapes.PREFIX,
            after=after, before=before, limit=limit + 1,
        )  # fmt: skip
        # With `before_id`, the extra entry is the newest.
        page = found[-limit:] if before is not None else found[:limit]
        shown = [shapes.message_batch(record, _site_of(request)) for record in page]
        return shapes.batch_page(shown, more=len(found) > limit)

    async def cancel(self, batch_id: str, request: Request) -> dict[str, Any]:
        identity = caller_of(request)
        record = await self.find(batch_id, identity)
        now_us, cancel = self._clock.wall_us(), self._stored.batches.cancel
        done = await self._stored.call(cancel, batch_id, identity.team_id, now_us)
        record = await self.find(batch_id, identity)
        if not done and record.cancelling_us is None:
            raise RequestError("bad_request", "The batch has ended and cannot be canceled.")
        return shapes.message_batch(record, _site_of(request))

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
            raise RequestError(
                "bad_request",
                "The batch has not ended, so it has no results yet. Retry when its "
                "`processing_status` is `ended`.",
            )
        files = self._files_of(record)
        for file_id in files:
            if await self._stored.call(self._stored.files.find, file_id, record.team_id) is None:
                words = (
                    f"Files are kept for {self._limits.keep_days} days or until they are deleted"
                )
                raise RequestError("no_file", f"The results were deleted. {words}.")
        return self._results(record, files)

    @staticmethod
    def _files_of(record: BatchRecord) -> list[str]:
        """Return the result files, or the input file of a batch that never started."""
        ended = [item for item in (record.output_file_id, record.error_file_id) if item is not None]
        return ended or [record.input_file_id]

    async def _results(
        self, record: BatchRecord, files: Sequence[str]
    ) -> AsyncGenerator[bytes, None]:
        for file_id in files:
            async for line in self._lines(file_id):
                was_read = file_id != record.input_file_id
                yield shapes.result_line(line) if was_read else shapes.unread_line(line, record)

    async def _lines(self, file_id: str) -> AsyncGenerator[bytes, None]:
        """Yield the file's lines; at most one chunk and an incomplete line are in memory."""
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

    def _read_lines(self, text: bytes) -> tuple[bytes, int]:
        """Return the input file and the number of its requests."""
        requests = shapes.read_creation(text)
        most = self._limits.lines_limit
        if len(requests) > most:
            message = f"A batch may hold {most} requests; these are {len(requests)}."
            raise RequestError("bad_request", message, param="requests")
        reader = InputLines(shapes.ENDPOINT, self._known)
        lines = shapes.input_lines(requests, reader, line_bytes=self._line_bytes)
        return b"".join(lines), len(requests)

    async def _store_file(self, batch: BatchRecord, text: bytes) -> None:
        """Store the input file; remove all of it if it does not fit."""
        files, until_us = self._stored.files, batch.created_us + self._limits.keep_days * DAY_US
        record = FileRecord(
            batch.input_file_id, batch.team_id, batch.key_id, PURPOSE, f"{batch.id}_input.jsonl",
            created_us=batch.created_us, expires_us=until_us,
        )  # fmt: skip
        await self._stored.call(files.create, record)
        try:
            await self._append(record.id, text)
            whole = replace(record, bytes=len(text), status=PROCESSED)
            await self._stored.call(files.finish, whole)
        except BaseException:
            await asyncio.shield(self._stored.call(files.drop, record.id))
            raise

    async def _append(self, file_id: str, text: bytes) -> None:
        most = self._limits.team_limit_bytes
        for number, start in enumerate(range(0, len(text), CHUNK_BYTES)):
            chunk = text[start : start + CHUNK_BYTES]
            append = self._stored.files.append
            if not await self._stored.call(append, file_id, number, chunk, team_limit_bytes=most):
                raise storage_full(most)


def _name_betas(request: Request, response: Response) -> None:
    """Name the requested betas in a header: lines are stored without headers, so none apply."""
    names = sorted(
        {
            name.strip()
            for told in request.headers.getlist(_BETAS)
            for name in told.split(",")
            if name.strip() and not name.strip().startswith(_OWN_BETA)
        }
    )
    if names:
        listed = listed_names([f"{_BETAS}.{name}" for name in names])
        response.headers.append(IGNORED.decode(), listed.decode())


def _site_of(request: Request) -> str:
    """Return scheme, host and sub-path of the gateway as the client sees it, or "".

    A proxy that ends TLS or strips a sub-path states them in headers. The result is shown only to
    the client that sent these headers. It is empty without a host.
    """
    host, told = request.headers.get("host", ""), request.headers.get("x-forwarded-proto", "")
    below = request.headers.get("x-forwarded-prefix", "").rstrip("/")
    scheme = told.partition(",")[0].strip().lower()
    if scheme not in ("http", "https"):
        scheme = request.url.scheme
    site = f"{scheme}://{host}" if _HOST.fullmatch(host) else ""
    return site + below if site and _SUB_PATH.fullmatch(below) else site


def message_batches_router(batches: MessageBatches) -> APIRouter:
    router = APIRouter(prefix=shapes.PATH, tags=["batches"])

    @router.post("", summary="Make a batch of messages", openapi_extra=_BODY)
    async def create(request: Request, response: Response) -> dict[str, Any]:
        return await batches.create(request, response)

    @router.get("", summary="The team's batches of messages, the newest first")
    async def listed(
        request: Request,
        after_id: Text = None,
        before_id: Text = None,
        limit: Annotated[int, Query(ge=1, le=LISTED_MOST)] = LISTED,
    ) -> dict[str, Any]:
        after, before = check_storable("after_id", after_id), check_storable("before_id", before_id)
        return await batches.list_batches(request, after, before, limit)

    @router.get("/{batch_id}", summary="One batch of messages")
    async def retrieve(batch_id: str, request: Request) -> dict[str, Any]:
        record = await batches.find(batch_id, caller_of(request))
        return shapes.message_batch(record, _site_of(request))

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
        return await batches.cancel(batch_id, request)

    @router.delete("/{batch_id}", summary="Delete a batch of messages that has ended")
    async def delete(batch_id: str, request: Request) -> dict[str, Any]:
        return await batches.delete(batch_id, caller_of(request))

    return router
