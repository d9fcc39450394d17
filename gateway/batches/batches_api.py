"""`/v1/batches`: made of a team's file, watched, cancelled; another team's batch is not there."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request, Response
from starlette.requests import ClientDisconnect

from gateway.batches.batch_database import BatchDatabase
from gateway.batches.files_api import file_of
from gateway.batches.inputlines import ENDPOINTS
from gateway.batches.shapes import batch_object, page
from gateway.batches.uploads import LIFE_S, PURPOSE
from gateway.clock import Clock
from gateway.config.settings import ServerSection
from gateway.control.access import caller_of
from gateway.control.storable_text import Text, check_storable
from gateway.errors import RequestError
from gateway.http.body import EMPTY
from gateway.ids import BatchIds
from gateway.request.idempotency.idempotency_store import name_of, reused_key_error
from ledger.batches.store import BatchRecord
from ledger.idempotency import IdempotencyRecord
from ledger.identity.keys import Identity

BODY_LIMIT = 64 * 1024
JSON_TYPE = "application/json"
HOUR_US = 3_600_000_000
PREFIX = "batch_"
WINDOW, WINDOW_US = "24h", 24 * 3600 * 1_000_000
LISTED, LISTED_MOST = 20, 100
PAIRS, KEY_LIMIT, VALUE_LIMIT = 16, 64, 512  # of `metadata`, as OpenAI limits it

_Named = Annotated[str, msgspec.Meta(min_length=1, max_length=KEY_LIMIT)]
_Said = Annotated[str, msgspec.Meta(max_length=VALUE_LIMIT)]


class OutputExpiry(msgspec.Struct):
    """`output_expires_after`."""

    anchor: Literal["created_at"]
    seconds: Annotated[int, msgspec.Meta(ge=LIFE_S[0], le=LIFE_S[1])]


class BatchCreate(msgspec.Struct):
    input_file_id: str
    endpoint: str
    completion_window: str
    metadata: Annotated[dict[_Named, _Said], msgspec.Meta(max_length=PAIRS)] | None = None
    output_expires_after: OutputExpiry | None = None


_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["input_file_id", "endpoint", "completion_window"],
                    "properties": {
                        "input_file_id": {"type": "string"},
                        "endpoint": {"type": "string", "enum": list(ENDPOINTS)},
                        "completion_window": {"type": "string", "enum": [WINDOW]},
                        "metadata": {
                            "type": ["object", "null"],
                            "additionalProperties": {"type": "string", "maxLength": VALUE_LIMIT},
                            "propertyNames": {"minLength": 1, "maxLength": KEY_LIMIT},
                            "maxProperties": PAIRS,
                        },
                    },
                }
            }
        },
    }
}


def batches_router(
    stored: BatchDatabase,
    clock: Clock,
    on_made: Callable[[], None],
    *,
    most: int,
    server: ServerSection,
) -> APIRouter:
    """The routes; `on_made` hears of every new batch.

    `most`: unfinished batches of a team. Each keeps a copy of its lines.
    """
    router = APIRouter(prefix="/v1/batches", tags=["batches"])
    new_id = BatchIds()

    @router.post("", summary="Make a batch of an uploaded file", openapi_extra=_BODY)
    async def create(request: Request, response: Response) -> dict[str, Any]:
        identity = caller_of(request)
        text = await _text(request, server.timeouts.receive_s)
        asked = _read(text)
        record = await file_of(stored, asked.input_file_id, identity.team_id, "input_file_id")
        if record.purpose != PURPOSE:
            message = f"The file's purpose is `{record.purpose}`; `{PURPOSE}` is needed."
            raise RequestError("bad_request", message, param="input_file_id")
        made = _make_batch(asked, identity, new_id(PREFIX), clock.wall_us())
        asking = _idempotency_record_of(request, made, text)
        if asking is not None:
            until_us = made.created_us + round(server.idempotency.hours * HOUR_US)
            made = await _claimed_batch(stored, made, asking, until_us)
            earlier = await stored.call(stored.batches.find, made.id, made.team_id)
            if earlier is not None:
                response.headers["idempotent-replayed"] = "true"
                return batch_object(earlier)
        await _store_batch(stored, made, asking, most)
        on_made()
        return batch_object(made)

    @router.get("", summary="The team's batches, the newest first; errors are told by each")
    async def listed(
        request: Request,
        after: Text = None,
        limit: Annotated[int, Query(ge=1, le=LISTED_MOST)] = LISTED,
    ) -> dict[str, Any]:
        identity = caller_of(request)
        found = await stored.call(
            stored.batches.list_batches,
            identity.team_id,
            prefix=PREFIX,
            after=check_storable("after", after),
            limit=limit + 1,
        )
        return page([batch_object(record) for record in found[:limit]], more=len(found) > limit)

    @router.get("/{batch_id}", summary="One batch")
    async def one(batch_id: str, request: Request) -> dict[str, Any]:
        identity = caller_of(request)
        return batch_object(await _batch_of(stored, batch_id, identity))

    @router.post("/{batch_id}/cancel", summary="Cancel a batch; what is answered stays")
    async def cancel(batch_id: str, request: Request) -> dict[str, Any]:
        identity = caller_of(request)
        record = await _batch_of(stored, batch_id, identity)
        now_us = clock.wall_us()
        done = await stored.call(stored.batches.cancel, batch_id, identity.team_id, now_us)
        record = await _batch_of(stored, batch_id, identity)
        if not done and record.status not in ("cancelling", "cancelled"):
            message = f"A batch with status `{record.status}` cannot be cancelled."
            raise RequestError("bad_request", message)
        return batch_object(record)

    return router


def _idempotency_record_of(
    request: Request, made: BatchRecord, text: bytes
) -> IdempotencyRecord | None:
    """Who asks under an `Idempotency-Key`, as the request itself would be called: by its batch."""
    once = request.headers.get("idempotency-key")
    if once is None:
        return None
    digest = sha256(b"/v1/batches\0" + text).digest()
    return IdempotencyRecord(made.key_id, name_of(once.encode("latin-1")), digest, made.id)


async def _claimed_batch(
    stored: BatchDatabase, made: BatchRecord, asking: IdempotencyRecord, until_us: int
) -> BatchRecord:
    """The batch under the name that its key stands for, whether it was made then or not."""
    now_us = made.created_us
    first = await stored.call(stored.claim_key, asking, now_us=now_us, expires_us=until_us)
    if first.digest != asking.digest:
        raise reused_key_error(f"`{first.request_id}`")
    return replace(made, id=first.request_id)


async def _store_batch(
    stored: BatchDatabase, made: BatchRecord, asking: IdempotencyRecord | None, most: int
) -> None:
    if await stored.call(stored.batches.create, made, most=most):
        return
    if asking is not None:
        await stored.call(stored.free_key, replace(asking, request_id=made.id))
    message = f"The team has {most} unfinished batches, and may have no more: wait for one."
    raise RequestError("too_many_batches", message)


async def _text(request: Request, patience_s: float) -> bytes:
    """The whole body within the size limit and the receive deadline."""
    if "json" not in request.headers.get("content-type", JSON_TYPE).partition(";")[0].lower():
        raise RequestError("media_type", f"Send the body as `{JSON_TYPE}`.")
    text = b""
    try:
        async with asyncio.timeout(patience_s):
            async for part in request.stream():
                text += part
                if len(text) > BODY_LIMIT:
                    raise RequestError("too_large", f"The body is larger than {BODY_LIMIT} bytes.")
    except TimeoutError as error:
        raise RequestError("slow_client", "The request body did not arrive in time.") from error
    except ClientDisconnect as error:
        raise RequestError("bad_request", "The client hung up before its body ended.") from error
    return text


def _read(text: bytes) -> BatchCreate:
    try:
        asked = msgspec.json.decode(text, type=BatchCreate)
    except msgspec.ValidationError as error:
        raise RequestError("bad_request", f"The body: {error}.", param=_member_of(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        told = f"The body is not valid JSON: {error}" if text.strip() else EMPTY
        raise RequestError("bad_request", told) from error
    if asked.endpoint not in ENDPOINTS:
        known = ", ".join(f"`{path}`" for path in ENDPOINTS)
        raise RequestError("bad_request", f"`endpoint` must be one of {known}.", param="endpoint")
    if asked.completion_window != WINDOW:
        message = f"`completion_window` must be `{WINDOW}`."
        raise RequestError("bad_request", message, param="completion_window")
    return asked


def _member_of(error: msgspec.ValidationError) -> str | None:
    """`$.metadata[...]` and `missing required field `endpoint`` name a member."""
    words = str(error)
    place = words.partition("`$.")[2].partition("`")[0].partition("[")[0].partition(".")[0]
    named = words.partition("field `")[2].partition("`")[0]
    return place or named or None


def _make_batch(asked: BatchCreate, identity: Identity, batch_id: str, now_us: int) -> BatchRecord:
    kept = asked.output_expires_after
    return BatchRecord(
        id=batch_id,
        team_id=identity.team_id,
        key_id=identity.key_id,
        endpoint=asked.endpoint,
        completion_window=WINDOW,
        input_file_id=asked.input_file_id,
        created_us=now_us,
        expires_us=now_us + WINDOW_US,
        labels=asked.metadata,
        output_seconds=None if kept is None else kept.seconds,
    )


async def _batch_of(stored: BatchDatabase, batch_id: str, identity: Identity) -> BatchRecord:
    plain = batch_id.isascii() and batch_id.isprintable()
    record = await stored.call(stored.batches.find, batch_id, identity.team_id) if plain else None
    if record is None:
        raise RequestError("no_batch", f"The batch `{batch_id[:64]}` does not exist.", param="id")
    return record
