"""Routes of `/v1/batches`: create, read, list and cancel a team's batches.

Batches of other teams answer 404.
"""

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request, Response

from gateway.batches.batch_database import BatchDatabase
from gateway.batches.batch_maker import BatchMaker
from gateway.batches.body_pace import read_json_body
from gateway.batches.files_api import file_of
from gateway.batches.inputlines import ENDPOINTS, SPELLINGS
from gateway.batches.shapes import batch_object, page
from gateway.batches.uploads import LIFE_S, PURPOSE
from gateway.clock import Clock
from gateway.config.settings import ServerSection
from gateway.control.access import caller_of
from gateway.control.storable_text import Text, check_storable
from gateway.errors import RequestError
from gateway.http.body import UNREADABLE, decode_object, refuse_unreadable
from gateway.ids import BatchIds
from ledger.batches.store import BatchRecord
from ledger.identity.keys import Identity

BODY_LIMIT = 64 * 1024
PREFIX = "batch_"
WINDOW, WINDOW_US = "24h", 24 * 3600 * 1_000_000
LISTED, LISTED_MOST = 20, 100
PAIRS, KEY_LIMIT, VALUE_LIMIT = 16, 64, 512  # OpenAI's limits of `metadata`

_Named = Annotated[str, msgspec.Meta(min_length=1, max_length=KEY_LIMIT)]
_Said = Annotated[str, msgspec.Meta(max_length=VALUE_LIMIT)]


class OutputExpiry(msgspec.Struct, forbid_unknown_fields=True):
    """Member `output_expires_after` of a request."""

    anchor: Literal["created_at"]
    seconds: Annotated[int, msgspec.Meta(ge=LIFE_S[0], le=LIFE_S[1])]


class BatchCreate(msgspec.Struct, forbid_unknown_fields=True):
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
                    "additionalProperties": False,
                    "properties": {
                        "input_file_id": {"type": "string"},
                        "endpoint": {"type": "string", "enum": list(SPELLINGS)},
                        "completion_window": {"type": "string", "enum": [WINDOW]},
                        "metadata": {
                            "type": ["object", "null"],
                            "additionalProperties": {"type": "string", "maxLength": VALUE_LIMIT},
                            "propertyNames": {"minLength": 1, "maxLength": KEY_LIMIT},
                            "maxProperties": PAIRS,
                        },
                        "output_expires_after": {
                            "type": ["object", "null"],
                            "required": ["anchor", "seconds"],
                            "additionalProperties": False,
                            "properties": {
                                "anchor": {"type": "string", "enum": ["created_at"]},
                                "seconds": {
                                    "type": "integer",
                                    "minimum": LIFE_S[0],
                                    "maximum": LIFE_S[1],
                                },
                            },
                        },
                    },
                }
            }
        },
    }
}


def batches_router(
    stored: BatchDatabase, clock: Clock, maker: BatchMaker, *, server: ServerSection
) -> APIRouter:
    router = APIRouter(prefix="/v1/batches", tags=["batches"])
    new_id, patience_s = BatchIds(), server.timeouts.receive_s

    @router.post("", summary="Make a batch of an uploaded file", openapi_extra=_BODY)
    async def create(request: Request, response: Response) -> dict[str, Any]:
        identity = caller_of(request)
        text = await read_json_body(request, limit=BODY_LIMIT, patience_s=patience_s)
        asked = _read(text)
        record = await file_of(stored, asked.input_file_id, identity.team_id, "input_file_id")
        if record.purpose != PURPOSE:
            message = f"The file's purpose is `{record.purpose}`; `{PURPOSE}` is needed."
            raise RequestError("bad_request", message, param="input_file_id")
        made = _make_batch(asked, identity, new_id(PREFIX), clock.wall_us())
        claim = await maker.claim(request, response, made, text, router.prefix)
        if claim.earlier is not None:
            return batch_object(claim.earlier)
        await maker.store(claim)
        return batch_object(claim.record)

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


def _read(text: bytes) -> BatchCreate:
    try:
        asked: BatchCreate = decode_object(text, BatchCreate)
    except msgspec.ValidationError as error:
        raise RequestError("bad_request", f"The body: {error}.", param=_member_of(error)) from error
    except UNREADABLE as error:
        refuse_unreadable(text, error)
    if asked.endpoint not in SPELLINGS:
        known = ", ".join(f"`{path}`" for path in ENDPOINTS)
        raise RequestError("bad_request", f"`endpoint` must be one of {known}.", param="endpoint")
    if asked.completion_window != WINDOW:
        message = f"`completion_window` must be `{WINDOW}`."
        raise RequestError("bad_request", message, param="completion_window")
    return asked


def _member_of(error: msgspec.ValidationError) -> str | None:
    """Return the member that a validation error names.

    Handles `$.metadata[...]` and `missing required field `endpoint``.
    """
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
        endpoint=SPELLINGS[asked.endpoint],
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
        raise RequestError(
            "no_batch",
            f"The batch `{batch_id[:64]}` does not exist. `GET /v1/batches` lists all of "
            "this team.",
            param="id",
        )
    return record
