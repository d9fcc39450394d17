"""Routes of a team's conversations and their items: `/v1/conversations`.

An item written by a key with a residency restriction restricts every answer that continues from it.
"""

from dataclasses import replace
from typing import Any, Final

from fastapi import APIRouter, Request

from gateway.control.access import caller_of
from gateway.control.storable_text import Text, check_storable
from gateway.errors import invalid_error
from gateway.ids import BatchIds
from gateway.request.dialects.fields import changed_metadata, iterate_objects, metadata_of
from gateway.request.dialects.responses_input import read_conversation
from gateway.request.store.compaction import CompactionReader
from gateway.request.store.continued_request import ContinuedRequest, RequestContinuation
from gateway.request.store.object_store import ObjectStore
from gateway.request.store.response_items import name_items
from gateway.request.store.stored_document import StoredDocument
from gateway.stored.json_body import BodyLimits, read_json_object
from gateway.stored.list_page import (
    Limit,
    Order,
    find_stored,
    list_object,
    not_found,
    store_or_refuse,
    stored_page,
)
from ledger.identity.keys import Identity
from ledger.stored_objects import ObjectQuery
from router.policy import tighten
from router.types import Residency

ITEMS_LIMIT: Final = 20  # items of one request, as documented by OpenAI
WHAT, ITEM = "Conversation", "Item"
_US: Final = 1_000_000
_NEXT: Final = {"role": "user", "content": "-"}  # a turn that continues from the items


class ConversationBook:
    """Operations of the routes on a team's conversations."""

    def __init__(self, store: ObjectStore, limit_bytes: int) -> None:
        """Create the operations. `limit_bytes` is the maximum size of one request's items."""
        self._store = store
        self._continuation = RequestContinuation(store, limit_bytes)
        self._new_id = BatchIds()

    async def create(self, body: dict[str, Any], identity: Identity) -> dict[str, Any]:
        """Store a new conversation with its first items. Return the conversation."""
        name, now_us = self._new_id("conv_"), self._store.wall_us()
        conversation = {
            "id": name,
            "object": "conversation",
            "created_at": now_us // _US,
            "metadata": metadata_of(body),
        }
        documents = [self._document(name, "conversation", conversation, identity)]
        if body.get("items") is not None:
            documents += await self._items(body, name, identity)
        await store_or_refuse(self._store, documents)
        return conversation

    async def find(self, name: str, identity: Identity) -> StoredDocument:
        """Return the conversation. Raises `RequestError` 404 when the team has none of this id."""
        return await find_stored(self._store, identity, name, "conversation", WHAT)

    async def update(self, name: str, body: dict[str, Any], identity: Identity) -> dict[str, Any]:
        """Replace the conversation's metadata. Return the conversation."""
        found = await self.find(name, identity)
        changed = {**found.content, "metadata": changed_metadata(body)}
        await store_or_refuse(self._store, [found.with_content(changed)], replaces=True)
        return changed

    async def add_items(
        self, name: str, body: dict[str, Any], identity: Identity
    ) -> dict[str, Any]:
        """Append items to a conversation. Return them as a list object."""
        await self.find(name, identity)
        documents = await self._items(body, name, identity)
        if not documents:
            raise invalid_error("items", "must have at least one item.")
        await store_or_refuse(self._store, documents, renews=name)
        return list_object([document.content for document in documents], more=False)

    async def find_item(self, name: str, item_id: str, identity: Identity) -> StoredDocument:
        """Return an item of the conversation. Raises `RequestError` 404 when it does not exist."""
        await self.find(name, identity)
        found = await find_stored(self._store, identity, item_id, "item", ITEM)
        if found.parent != name:
            raise not_found(ITEM, item_id)
        return found

    async def delete(self, name: str, identity: Identity) -> None:
        """Delete an object of the team; for a conversation, its items as well."""
        await self._store.delete(identity.team_id, name)

    async def _items(
        self, body: dict[str, Any], conversation: str, identity: Identity
    ) -> list[StoredDocument]:
        """Return the request's items as documents.

        Raises `RequestError` when an item would make every later turn fail.
        """
        given = [dict(item) for _, item in iterate_objects(body.get("items"), "items")]
        if len(given) > ITEMS_LIMIT:
            raise invalid_error(
                "items", f"has more than {ITEMS_LIMIT} items. Send several requests."
            )
        source = ContinuedRequest(stores=True, residency=Residency(identity.residency))
        given = await self._continuation.resolve(source, given, identity.team_id, "items")
        reader = CompactionReader(self._store, identity.team_id)
        opened, bound = await reader.open_all(given, "items")
        source.residency = tighten(source.residency, bound)
        if given:
            read_conversation(None, [*opened, _NEXT], "items", refused_before=False)
        named = name_items(given, self._new_id(""), keep_ids=False)
        documents = [
            self._document(str(item["id"]), "item", item, identity, parent=conversation)
            for item in named
        ]
        return [replace(document, residency=source.residency.value) for document in documents]

    def _document(
        self,
        name: str,
        kind: str,
        content: dict[str, Any],
        identity: Identity,
        *,
        parent: str | None = None,
    ) -> StoredDocument:
        return StoredDocument(
            team_id=identity.team_id,
            id=name,
            kind=kind,
            content=content,
            created_us=self._store.wall_us(),
            expires_us=self._store.expires_us,
            parent=parent,
            residency=identity.residency,
        )


def conversations_router(store: ObjectStore, limits: BodyLimits) -> APIRouter:
    """Return the routes of conversations."""
    router = APIRouter(prefix="/v1/conversations", tags=["stored answers"])
    book = ConversationBook(store, limits.size_bytes)

    @router.post("", summary="Make a conversation")
    async def create(request: Request) -> dict[str, Any]:
        return await book.create(await read_json_object(request, limits), caller_of(request))

    @router.get("/{conversation_id}", summary="One conversation")
    async def retrieve(conversation_id: str, request: Request) -> dict[str, Any]:
        found = await book.find(conversation_id, caller_of(request))
        return dict(found.content)

    @router.post("/{conversation_id}", summary="Change a conversation's metadata")
    async def update(conversation_id: str, request: Request) -> dict[str, Any]:
        body = await read_json_object(request, limits)
        return await book.update(conversation_id, body, caller_of(request))

    @router.delete("/{conversation_id}", summary="Delete a conversation and its items")
    async def delete(conversation_id: str, request: Request) -> dict[str, Any]:
        identity = caller_of(request)
        await book.find(conversation_id, identity)
        await book.delete(conversation_id, identity)
        return {"id": conversation_id, "object": "conversation.deleted", "deleted": True}

    _add_item_routes(router, book, store, limits)
    return router


def _add_item_routes(
    router: APIRouter, book: ConversationBook, store: ObjectStore, limits: BodyLimits
) -> None:
    path = "/{conversation_id}/items"

    @router.post(path, summary="Append items to a conversation")
    async def add(conversation_id: str, request: Request) -> dict[str, Any]:
        body = await read_json_object(request, limits)
        return await book.add_items(conversation_id, body, caller_of(request))

    @router.get(path, summary="A conversation's items")
    async def listed(
        conversation_id: str,
        request: Request,
        after: Text = None,
        limit: Limit = 20,
        order: Order = "desc",
    ) -> dict[str, Any]:
        identity = caller_of(request)
        await book.find(conversation_id, identity)
        query = ObjectQuery(
            team_id=identity.team_id, kind="item", parent=conversation_id,
            after=check_storable("after", after), limit=limit, descending=order == "desc",
        )  # fmt: skip
        return await stored_page(store, query, lambda item: dict(item.content))

    @router.get(path + "/{item_id}", summary="One item of a conversation")
    async def one_item(conversation_id: str, item_id: str, request: Request) -> dict[str, Any]:
        found = await book.find_item(conversation_id, item_id, caller_of(request))
        return dict(found.content)

    @router.delete(path + "/{item_id}", summary="Delete an item of a conversation")
    async def delete_item(conversation_id: str, item_id: str, request: Request) -> dict[str, Any]:
        identity = caller_of(request)
        await book.find_item(conversation_id, item_id, identity)
        await book.delete(item_id, identity)
        found = await book.find(conversation_id, identity)
        return dict(found.content)
