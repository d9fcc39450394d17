"""Routes of `/v1/files`: a team's files for batches. Files of other teams answer 404."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from gateway.batches.batch_database import BatchDatabase
from gateway.batches.multipart import FormError, boundary_of
from gateway.batches.shapes import file_object, page
from gateway.batches.uploads import (
    LIFE_S,
    Upload,
    UploadIdempotency,
    UploadLimits,
    storage_full,
    too_large,
)
from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.control.access import caller_of
from gateway.control.storable_text import Text, check_storable
from gateway.errors import RequestError
from gateway.ids import BatchIds
from gateway.request.idempotency.idempotency_store import name_of
from ledger.batches.files import FileRecord

DAY_US, HOUR_US = 86_400 * 1_000_000, 3_600_000_000
UPLOADS_AT_ONCE, TEAM_UPLOADS = 16, 4  # each slot holds one chunk in memory
FORM_BYTES = 64 * 1024  # maximum of a form without its file
LISTED = 10_000
RETRY_AFTER_S = 1.0
ANTHROPICS = (
    "Anthropic's files are not served: files are kept here for OpenAI's batches alone. Send the "
    "content in the message, as a block with `source.type: base64`."
)

_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "purpose"],
                    "properties": {
                        "file": {"type": "string", "format": "binary", "minLength": 1},
                        "purpose": {"type": "string", "enum": ["batch"]},
                        "expires_after[anchor]": {"type": "string", "enum": ["created_at"]},
                        "expires_after[seconds]": {
                            "type": "integer",
                            "minimum": LIFE_S[0],
                            "maximum": LIFE_S[1],
                        },
                    },
                    "propertyNames": {"minLength": 1},
                    "dependentRequired": {
                        "expires_after[anchor]": ["expires_after[seconds]"],
                        "expires_after[seconds]": ["expires_after[anchor]"],
                    },
                }
            }
        },
    }
}


class UploadSlots:
    """Upload slots of a worker, of which one team may use only a part."""

    def __init__(self, most: int, share: int) -> None:
        self._most = most
        self._share = share
        self._open: Counter[str] = Counter()

    @contextmanager
    def reserve_slot(self, team_id: str) -> Iterator[None]:
        """Hold a slot while the context is open. Raises `RequestError` (503) if none is free."""
        if self._open[team_id] >= self._share:
            raise _full(
                f"The team has {self._share} open uploads, which is the maximum. Retry when "
                "one of them has ended."
            )
        if self._open.total() >= self._most:
            raise _full("The gateway has too many open uploads. Retry in a few seconds.")
        self._open[team_id] += 1
        try:
            yield
        finally:
            self._open[team_id] -= 1
            self._open += Counter()  # drops teams without open uploads


def _full(message: str) -> RequestError:
    return RequestError("overloaded", message, retry_after_s=RETRY_AFTER_S)


def files_router(stored: BatchDatabase, settings: Settings, clock: Clock) -> APIRouter:
    router = APIRouter(
        prefix="/v1/files", tags=["batches"], dependencies=[Depends(refuse_anthropics)]
    )
    limits, new_id = settings.batches, BatchIds()
    places = UploadSlots(UPLOADS_AT_ONCE, TEAM_UPLOADS)
    patience_s = settings.server.timeouts.receive_s
    bounds = UploadLimits(limits.file_limit_bytes, limits.team_limit_bytes, patience_s)

    @router.post("", summary="Upload a file of requests", openapi_extra=_FORM)
    async def create(request: Request, response: Response) -> dict[str, Any]:
        identity = caller_of(request)
        boundary = _boundary(request, limits.file_limit_bytes)
        with places.reserve_slot(identity.team_id):
            now_us = clock.wall_us()
            record = FileRecord(
                new_id("file-"), identity.team_id, identity.key_id, "batch", "",
                created_us=now_us, expires_us=now_us + limits.keep_days * DAY_US,
            )  # fmt: skip
            once = await _once(stored, record, settings.server.idempotency.hours, request)
            if once is None or once.first is None:
                await _check_capacity(stored, record.team_id, limits.team_limit_bytes)
            upload = Upload(stored, record, bounds, once)
            made = await upload.receive(boundary, request.stream())
            if made.id != record.id:
                response.headers["idempotent-replayed"] = "true"
            return file_object(made)

    @router.get("", summary="The team's files")
    async def listed(
        request: Request,
        purpose: Text = None,
        after: Text = None,
        order: Literal["asc", "desc"] = "desc",
        limit: Annotated[int, Query(ge=1, le=LISTED)] = LISTED,
    ) -> dict[str, Any]:
        identity = caller_of(request)
        found = await stored.call(
            stored.files.list_files, identity.team_id, purpose=check_storable("purpose", purpose),
            after=check_storable("after", after), limit=limit + 1, newest_first=order == "desc",
        )  # fmt: skip
        return page([file_object(record) for record in found[:limit]], more=len(found) > limit)

    @router.get("/{file_id}", summary="One file, without its content")
    async def one(file_id: str, request: Request) -> dict[str, Any]:
        return file_object(await find_file(file_id, request))

    @router.get(
        "/{file_id}/content",
        summary="A file's content",
        response_class=StreamingResponse,
        responses={200: {"content": {"application/octet-stream": {}}}},
    )
    async def content(file_id: str, request: Request) -> StreamingResponse:
        record = await find_file(file_id, request)
        headers = {"content-length": str(record.bytes)}
        return StreamingResponse(
            _content(stored, file_id), media_type="application/octet-stream", headers=headers
        )

    @router.delete("/{file_id}", summary="Delete a file")
    async def delete(file_id: str, request: Request) -> dict[str, Any]:
        await _delete_file(stored, await find_file(file_id, request))
        return {"id": file_id, "object": "file", "deleted": True}

    async def find_file(file_id: str, request: Request) -> FileRecord:
        identity = caller_of(request)
        return await file_of(stored, file_id, identity.team_id)

    return router


def refuse_anthropics(request: Request) -> None:
    """Raise `RequestError` (404) for a client of Anthropic's API, whose files differ."""
    if "anthropic-version" in request.headers:
        raise RequestError("not_served", ANTHROPICS)


async def _once(
    stored: BatchDatabase, record: FileRecord, hours: float, request: Request
) -> UploadIdempotency | None:
    """Return the upload's idempotency key with its earlier claim; `None` without a key."""
    given = request.headers.get("idempotency-key")
    if given is None:
        return None
    name, now_us = name_of(given.encode("latin-1")), record.created_us
    first = await stored.call(stored.find_claim, record.key_id, name, now_us=now_us)
    return UploadIdempotency(name, now_us + round(hours * HOUR_US), first)


async def _check_capacity(stored: BatchDatabase, team_id: str, limit: int) -> None:
    if await stored.call(stored.files.stored_bytes, team_id) >= limit:
        raise storage_full(limit)


async def _delete_file(stored: BatchDatabase, record: FileRecord) -> None:
    reader = await stored.call(stored.batches.delete_file, record.id, record.team_id)
    if reader is not None:
        message = f"The batch `{reader}` has not read this file yet. Try again in a moment."
        raise RequestError("file_in_use", message, param="id", retry_after_s=1.0)


async def file_of(
    stored: BatchDatabase, file_id: str, team_id: str, param: str = "id"
) -> FileRecord:
    """Return the team's file. Raises `RequestError` (404) if the team has no such file."""
    plain = file_id.isascii() and file_id.isprintable()
    record = await stored.call(stored.files.find, file_id, team_id) if plain else None
    if record is None:
        raise RequestError(
            "no_file",
            f"The file `{file_id[:64]}` does not exist. `GET /v1/files` lists all of this team.",
            param=param,
        )
    return record


def _boundary(request: Request, limit: int) -> bytes:
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit + FORM_BYTES:
        raise too_large(limit)
    try:
        return boundary_of(request.headers.get("content-type", ""))
    except FormError as error:
        raise RequestError(
            "media_type", f"A file must be sent as `multipart/form-data`: {error}."
        ) from error


async def _content(stored: BatchDatabase, file_id: str) -> AsyncIterator[bytes]:
    """Yield the file in chunks; if it is deleted during the download, the body ends early."""
    number = 0
    while (data := await stored.call(stored.files.chunk, file_id, number)) is not None:
        yield data
        number += 1
