"""Routes of stored responses, their input and their cancellation: `/v1/responses/ID`.

Another team's response is answered with 404.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from gateway.control.access import caller_of
from gateway.control.storable_text import Text, check_storable
from gateway.errors import RequestError
from gateway.request.store.object_store import ObjectStore
from gateway.request.store.response_items import list_input
from gateway.stored.followed_response import (
    FollowBounds,
    ResponseFollowers,
    current_response,
    told_events,
)
from gateway.stored.list_page import Limit, Order, find_stored, not_found, page_of
from ledger.identity.keys import Identity
from ledger.stored_objects import CANCELLED, UNFINISHED

WHAT = "Response"
EVENTS = "text/event-stream; charset=utf-8"


def responses_router(store: ObjectStore, bounds: FollowBounds) -> APIRouter:
    """The routes of stored answers."""
    followers = ResponseFollowers(store, bounds)
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
        now_us = store.wall_us()
        if not stream:
            return current_response(found, now_us)
        if found.progress.is_made_at(now_us):
            followed = await followers.follow(found.team_id, response_id, starting_after)
            return StreamingResponse(followed, media_type=EVENTS)
        told = told_events(found, now_us, starting_after)
        return StreamingResponse(told, media_type=EVENTS)

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
                "bad_request", "Only a response with `background: true` can be cancelled."
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
