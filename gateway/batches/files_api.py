"""`/v1/files`: kept for batches, per team; another team's file is not there."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from gateway.access import caller
from gateway.batches.ids import BatchIds
from gateway.batches.multipart import FormError, boundary_of
from gateway.batches.places import Places
from gateway.batches.shapes import file_object, page
from gateway.batches.stored import Stored
from gateway.batches.uploads import LIFE_S, Upload, no_room, too_large
from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.errors import RequestError
from ledger.files import FileRecord

DAY_US = 86_400 * 1_000_000
UPLOADS_AT_ONCE, TEAM_UPLOADS = 16, 4  # each holds a chunk
FORM_BYTES = 64 * 1024  # of a form beside its file
LISTED = 10_000

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


def files_router(stored: Stored, settings: Settings, clock: Clock) -> APIRouter:
    router = APIRouter(prefix="/v1/files", tags=["batches"])
    limits, new_id = settings.batches, BatchIds()
    places = Places(UPLOADS_AT_ONCE, TEAM_UPLOADS)

    @router.post("", summary="Upload a file of requests", openapi_extra=_FORM)
    async def create(request: Request) -> dict[str, Any]:
        identity = caller(request)
        boundary = _boundary(request, limits.file_limit_bytes)
        with places.one(identity.team_id):
            now_us = clock.wall_us()
            record = FileRecord(
                new_id("file-"), identity.team_id, identity.key_id, "batch", "",
                created_us=now_us, expires_us=now_us + limits.keep_days * DAY_US,
            )  # fmt: skip
            return file_object(await _received(stored, settings, record, boundary, request))

    @router.get("", summary="The team's files")
    async def listed(
        request: Request,
        purpose: str | None = None,
        after: str | None = None,
        order: Literal["asc", "desc"] = "desc",
        limit: Annotated[int, Query(ge=1, le=LISTED)] = LISTED,
    ) -> dict[str, Any]:
        identity = caller(request)
        found = await stored.call(
            stored.files.listed, identity.team_id, purpose=purpose, after=after, limit=limit + 1,
            newest_first=order == "desc",
        )  # fmt: skip
        return page([file_object(one) for one in found[:limit]], more=len(found) > limit)

    @router.get("/{file_id}", summary="One file, without its content")
    async def one(file_id: str, request: Request) -> dict[str, Any]:
        return file_object(await found(file_id, request))

    @router.get(
        "/{file_id}/content",
        summary="A file's content",
        response_class=StreamingResponse,
        responses={200: {"content": {"application/octet-stream": {}}}},
    )
    async def content(file_id: str, request: Request) -> StreamingResponse:
        record = await found(file_id, request)
        headers = {"content-length": str(record.bytes)}
        return StreamingResponse(
            _content(stored, file_id), media_type="application/octet-stream", headers=headers
        )

    @router.delete("/{file_id}", summary="Delete a file")
    async def delete(file_id: str, request: Request) -> dict[str, Any]:
        await found(file_id, request)
        await stored.call(stored.files.drop, file_id)
        return {"id": file_id, "object": "file", "deleted": True}

    async def found(file_id: str, request: Request) -> FileRecord:
        identity = caller(request)
        return await file_of(stored, file_id, identity.team_id)

    return router


async def _received(
    stored: Stored, settings: Settings, record: FileRecord, boundary: bytes, request: Request
) -> FileRecord:
    limits = settings.batches
    if await stored.call(stored.files.kept_bytes, record.team_id) >= limits.team_limit_bytes:
        raise no_room(limits.team_limit_bytes)
    upload = Upload(
        stored, record, limit_bytes=limits.file_limit_bytes,
        team_limit_bytes=limits.team_limit_bytes,
        patience_s=settings.server.timeouts.receive_s,
    )  # fmt: skip
    return await upload.receive(boundary, request.stream())


async def file_of(stored: Stored, file_id: str, team_id: str, param: str = "id") -> FileRecord:
    """The team's file; 404 when it has no such one."""
    plain = file_id.isascii() and file_id.isprintable()
    record = await stored.call(stored.files.find, file_id, team_id) if plain else None
    if record is None:
        raise RequestError("no_file", f"The file `{file_id[:64]}` does not exist.", param=param)
    return record


def _boundary(request: Request, limit: int) -> bytes:
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit + FORM_BYTES:
        raise too_large(limit)
    try:
        return boundary_of(request.headers.get("content-type", ""))
    except FormError as error:
        raise RequestError("media_type", f"Files come as a form: {error}.") from error


async def _content(stored: Stored, file_id: str) -> AsyncIterator[bytes]:
    """A chunk at a time; a file deleted meanwhile ends early, and its client sees that."""
    number = 0
    while (data := await stored.call(stored.files.chunk, file_id, number)) is not None:
        yield data
        number += 1
