"""Routes of stored responses, their input and their cancellation: `/v1/responses/ID`.

Another team's response is answered with 404.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from gateway.control.access import caller_of
from gateway.control.storable_text import Text, check_storable
from gateway.errors import RequestError
from gateway.request.dialects.responses_replay import replay_events
from gateway.request.store.object_store import ObjectStore
from gateway.request.store.response_items import list_input
from gateway.request.store.stored_document import StoredDocument
from gateway.stored.list_page import Limit, Order, find_stored, not_found, page_of
from ledger.identity.keys import Identity
from ledger.stored_objects import CANCELLED, UNFINISHED

WHAT = "Response"
EVENTS = "text/event-stream; charset=utf-8"


def responses_router(store: ObjectStore) -> APIRouter:
    """Return the routes of stored responses."""
    router = APIRouter(prefix="/v1/responses", tags=["stored answers"])

    @router.get(
        "/{response_id}", summary="A stored answer, whole or as events", response_model=None
    )
    async def retrieve(
        response_id: str,
        request: Request,
        stream: bool = False,
        starting_after: Annotated[int | None, Query(ge=0)] = None,
    ) -> dict[str, Any] | Response:
        found = await find_stored(store, caller_of(request), response_id, "response", WHAT)
        response = current_response(found, store.wall_us())
        if not stream:
            return response
        if response["status"] in UNFINISHED:
            raise RequestError(
                "bad_request",
                "The answer is not finished: its events can be read once it is. Poll without "
                "`stream`.",
                param="stream",
            )
        told = found.content.get("told") or ()
        return StreamingResponse(replay_events(response, starting_after, told), media_type=EVENTS)

    @router.delete("/{response_id}", summary="Delete a stored answer and its key")
    async def delete(response_id: str, request: Request) -> dict[str, Any]:
        identity = caller_of(request)
        await find_stored(store, identity, response_id, "response", WHAT)
        if not await store.delete(identity.team_id, response_id):
            raise not_found(WHAT, response_id)
        return {"id": response_id, "object": "response", "deleted": True}

    @router.post("/{response_id}/cancel", summary="End a background answer")
    async def cancel(response_id: str, request: Request) -> dict[str, Any]:
        identity = caller_of(request)
        found = await find_stored(store, identity, response_id, "response", WHAT)
        response = current_response(found, store.wall_us())
        if not response.get("background"):
            raise RequestError(
                "bad_request", "Only a response with `background: true` is cancelled."
            )
        return await _cancelled(store, identity, response)

    @router.get("/{response_id}/input_items", summary="What a stored answer was asked")
    async def input_items(
        response_id: str,
        request: Request,
        after: Text = None,
        limit: Limit = 20,
        order: Order = "desc",
    ) -> dict[str, Any]:
        found = await find_stored(store, caller_of(request), response_id, "response", WHAT)
        items = list_input(found.content)
        return page_of(items, after=check_storable("after", after), limit=limit, order=order)

    return router


async def _cancelled(
    store: ObjectStore, identity: Identity, response: dict[str, Any]
) -> dict[str, Any]:
    """Cancel a background response. Return it as cancelled, or as it had already ended."""
    if response["status"] not in UNFINISHED:
        return response
    if await store.cancel(identity.team_id, response["id"]):
        return {**response, "status": CANCELLED}
    ended = await find_stored(store, identity, response["id"], "response", WHAT)
    return current_response(ended, store.wall_us())


def current_response(found: StoredDocument, now_us: int) -> dict[str, Any]:
    """Return the response with its current status.

    The status is cancelled after a request to cancel, and failed if the worker ended before it.
    """
    response: dict[str, Any] = found.content["response"]
    status = found.status_at(now_us)
    if status == found.status:
        return response
    response = {**response, "status": status}
    if status == "failed":
        why = "The gateway's worker ended before the answer was made."
        response["error"] = {"code": "server_error", "message": why}
    return response
