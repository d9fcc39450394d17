"""Pages of list objects in OpenAI's format, and access to a team's stored objects."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from fastapi import Query

from gateway.errors import RequestError
from gateway.request.store.object_store import ObjectStore
from gateway.request.store.stored_document import StoredDocument
from ledger.identity.keys import Identity
from ledger.stored_objects import ObjectQuery

MOST = 100
Limit = Annotated[int, Query(ge=1, le=MOST)]
Order = Literal["asc", "desc"]


def list_object(objects: Sequence[dict[str, Any]], *, more: bool) -> dict[str, Any]:
    """Return a list object. Its `last_id` is the `after` of the next page."""
    return {
        "object": "list",
        "data": list(objects),
        "first_id": objects[0]["id"] if objects else None,
        "last_id": objects[-1]["id"] if objects else None,
        "has_more": more,
    }


def page_of(
    objects: Sequence[dict[str, Any]], *, after: str | None, limit: int, order: Order
) -> dict[str, Any]:
    """Return a page of `objects`, which are in order of creation.

    Raises `RequestError` 404 when `after` is not among them.
    """
    ordered = list(objects) if order == "asc" else list(reversed(objects))
    start = 0
    if after is not None:
        places = [index for index, item in enumerate(ordered) if item.get("id") == after]
        if not places:
            raise missing_after(after)
        start = places[0] + 1
    part = ordered[start : start + limit]
    return list_object(part, more=len(ordered) > start + limit)


async def stored_page(
    store: ObjectStore, query: ObjectQuery, shown: Callable[[StoredDocument], dict[str, Any]]
) -> dict[str, Any]:
    """Return a page of stored objects. It has fewer than `query.limit` if they are large.

    Raises `RequestError` 404 when `after` is not in the list.
    """
    found = await store.list_page(query)
    if found is None:
        raise missing_after(query.after or "")
    return list_object([shown(item) for item in found.documents], more=found.more)


async def find_stored(
    store: ObjectStore, identity: Identity, object_id: str, kind: str, what: str
) -> StoredDocument:
    """Return the team's object. Raises `RequestError` 404, also for another team's object."""
    found = await store.find(identity.team_id, object_id)
    if found is None or found.kind != kind:
        raise not_found(what, object_id)
    return found


async def store_or_refuse(
    store: ObjectStore,
    documents: Sequence[StoredDocument],
    *,
    renews: str | None = None,
    replaces: bool = False,
) -> None:
    """Store the objects. Raises `RequestError` when they cannot be stored.

    `renews` is the conversation that they belong to, which is then kept as long as they are.
    `replaces` means that the first object exists already; if it was deleted, it stays deleted.
    """
    refusal = await store.store(documents, renews=renews, replaces=replaces)
    if refusal == "unavailable":
        message = "The database of stored answers does not respond. Retry in 1 s."
        raise RequestError("unavailable", message, retry_after_s=1.0)
    kept_id = documents[0].id if replaces else renews
    if refusal == "full" and kept_id is not None:
        await _check_kept(store, documents[0].team_id, kept_id)
    if refusal is not None:
        message = "The object is larger than what is stored here, or than the room that is left."
        raise RequestError("too_large", message)


async def _check_kept(store: ObjectStore, team_id: str, object_id: str) -> None:
    if await store.find(team_id, object_id) is None:
        raise RequestError(
            "not_found",
            f"'{object_id}' was deleted in the meantime. List from the start again.",
            param=None,
        )


def not_found(what: str, object_id: str) -> RequestError:
    return RequestError("not_found", f"{what} with id '{object_id}' not found.", param=None)


def missing_after(after: str) -> RequestError:
    return RequestError("not_found", f"`after`: '{after}' is not in this list.", param="after")
