"""Routes of stored chat completions below `/v1/chat/completions`.

Another team's completion is answered with 404.
"""

from typing import Any, Final

from fastapi import APIRouter, Request

from gateway.control.access import caller_of
from gateway.control.storable_text import Text, check_storable
from gateway.kinds.chat import CHAT_PATH
from gateway.request.dialects.fields import changed_metadata
from gateway.request.store.object_store import ObjectStore
from gateway.request.store.stored_document import StoredDocument
from gateway.stored.json_body import BodyLimits, read_json_object
from gateway.stored.list_page import (
    Limit,
    Order,
    find_stored,
    list_object,
    missing_after,
    not_found,
    page_of,
    store_or_refuse,
)
from ledger.stored_objects import PAGE_BYTES, ObjectQuery

WHAT: Final = "Chat completion"
PAGE: Final = 100
SEARCHED: Final = 2_000  # completions that one filtered request may read


def chat_router(store: ObjectStore, limits: BodyLimits) -> APIRouter:
    """Return the routes of stored chat completions."""
    router = APIRouter(prefix=CHAT_PATH, tags=["stored answers"])

    @router.get("", summary="The team's stored chat completions")
    async def listed(
        request: Request,
        after: Text = None,
        limit: Limit = 20,
        order: Order = "asc",
        model: Text = None,
    ) -> dict[str, Any]:
        wanted = _metadata_filter(request)
        query = ObjectQuery(
            team_id=caller_of(request).team_id, kind="chat", after=check_storable("after", after),
            limit=PAGE, descending=order == "desc",
        )  # fmt: skip
        named = check_storable("model", model)
        return await _search(store, query, limit, named, wanted)

    @router.get("/{completion_id}", summary="A stored chat completion")
    async def retrieve(completion_id: str, request: Request) -> dict[str, Any]:
        return _shown(await find_stored(store, caller_of(request), completion_id, "chat", WHAT))

    @router.post("/{completion_id}", summary="Change a stored chat completion's metadata")
    async def update(completion_id: str, request: Request) -> dict[str, Any]:
        body = await read_json_object(request, limits)
        found = await find_stored(store, caller_of(request), completion_id, "chat", WHAT)
        completion = {**found.content["completion"], "metadata": changed_metadata(body)}
        changed = found.with_content({**found.content, "completion": completion})
        await store_or_refuse(store, [changed], replaces=True)
        return _shown(changed)

    @router.delete("/{completion_id}", summary="Delete a stored chat completion and its key")
    async def delete(completion_id: str, request: Request) -> dict[str, Any]:
        identity = caller_of(request)
        await find_stored(store, identity, completion_id, "chat", WHAT)
        if not await store.delete(identity.team_id, completion_id):
            raise not_found(WHAT, completion_id)
        return {"id": completion_id, "object": "chat.completion.deleted", "deleted": True}

    @router.get("/{completion_id}/messages", summary="What a stored chat completion was asked")
    async def messages(
        completion_id: str,
        request: Request,
        after: Text = None,
        limit: Limit = 20,
        order: Order = "asc",
    ) -> dict[str, Any]:
        found = await find_stored(store, caller_of(request), completion_id, "chat", WHAT)
        asked = [
            {"content": None, **message, "id": f"{completion_id}-{index}"}
            for index, message in enumerate(found.content["messages"])
        ]
        return page_of(asked, after=check_storable("after", after), limit=limit, order=order)

    return router


def _shown(found: StoredDocument) -> dict[str, Any]:
    completion: dict[str, Any] = found.content["completion"]
    return completion


def _metadata_filter(request: Request) -> dict[str, str]:
    """Return the filter by metadata in the query, written `metadata[NAME]=VALUE`."""
    return {
        name[len("metadata[") : -1]: value
        for name, value in request.query_params.items()
        if name.startswith("metadata[") and name.endswith("]")
    }


async def _search(
    store: ObjectStore, query: ObjectQuery, limit: int, model: str | None, wanted: dict[str, str]
) -> dict[str, Any]:
    """Return the first `limit` completions that match, out of those one request may read.

    The page has fewer if completions are large; `after` continues behind it.
    """
    found: list[dict[str, Any]] = []
    size, more = 0, True
    for _ in range(SEARCHED // PAGE):
        page = await store.list_page(query)
        if page is None:
            raise missing_after(query.after or "")
        fitting = [_shown(item) for item in page.documents if _fits(_shown(item), model, wanted)]
        found += fitting
        size += page.size if fitting else 0
        more = page.more
        if len(found) > limit or not more or size > PAGE_BYTES:
            break
        query = ObjectQuery(
            team_id=query.team_id, kind=query.kind, after=page.documents[-1].id, limit=PAGE,
            descending=query.descending,
        )  # fmt: skip
    return list_object(found[:limit], more=bool(found) and (more or len(found) > limit))


def _fits(completion: dict[str, Any], model: str | None, wanted: dict[str, str]) -> bool:
    metadata = completion.get("metadata") or {}
    return (
        model is None or completion.get("model") == model
    ) and wanted.items() <= metadata.items()
