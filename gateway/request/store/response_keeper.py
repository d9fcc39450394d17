"""Keeper of a Responses answer: before its end is sent, every host can find it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from gateway.http.body import Members
from gateway.request.dialects.answer_keeper import KeptAnswer
from gateway.request.store.continued_request import ContinuedRequest
from gateway.request.store.object_store import ObjectStore
from gateway.request.store.response_items import as_items, name_items
from gateway.request.store.stored_document import StoredDocument
from ledger.stored_objects import CANCELLED
from router.policy import tighten
from router.types import Residency

FAILED: Final = "failed"
_CANCELLED: Final[dict[str, Any]] = {
    "status": CANCELLED, "output": [], "usage": None, "error": None, "completed_at": None,
    "incomplete_details": None,
}  # fmt: skip
LEASE_US: Final = 30_000_000  # a worker without renewal for so long is gone


class ResponseKeeper:
    """A keeper that stores one request's answer, if requested; `asked` has its history."""

    def __init__(
        self, store: ObjectStore, asked: ContinuedRequest, *, team_id: str, request_id: str
    ) -> None:
        self._store = store
        self._asked = asked
        self._team_id = team_id
        self._name = request_id.removeprefix("req_")
        self._created_us = store.wall_us()
        self._begun = False  # whether an unfinished row is stored
        self.told: Sequence[Sequence[Any]] = ()  # events of a stream, as recorded by `note_event`
        self._withholds = False  # until detectors have read the request

    @property
    def stores(self) -> bool:
        """Return whether the answer is stored."""
        return self._asked.stores

    @property
    def background(self) -> bool:
        """Return whether the answer is generated in the background, without its client."""
        return self._asked.background

    @property
    def residency(self) -> Residency:
        """Return the residency that the request inherits from the answer it continues."""
        return self._asked.residency

    @property
    def own_members(self) -> Members:
        """Return the items that the request adds to its conversation."""
        return {"input": msgspec.Raw(self._asked.own_input)} if self._asked.stores else {}

    def withhold(self) -> None:
        """Store no input until it is allowed."""
        self._withholds = True

    def allow(self, members: Members) -> None:
        """Store this input in place of what was sent."""
        self._withholds = False
        if "input" in members:
            self._asked.own_input = bytes(members["input"])

    async def keep(self, document: Mapping[str, Any], residency: Residency) -> KeptAnswer:
        """Store the answer, if requested, so that every host finds it."""
        if not self._asked.stores:
            return KeptAnswer(document)
        refusal = await self.store(document, residency)
        return KeptAnswer(document if refusal is None else {**document, "store": False}, refusal)

    async def store(self, response: Mapping[str, Any], residency: Residency) -> str | None:
        """Store the answer so far. Return the reason if it is not stored."""
        raw = b"null" if self._withholds else self._asked.own_input
        keeps_ids = self._asked.conversation is None
        bound = tighten(residency, self._asked.residency)
        unfinished = response["status"] in ("queued", "in_progress")
        content = {
            "response": dict(response), "input": msgspec.Raw(raw), "keeps_ids": keeps_ids,
            **({"told": self.told} if self.told else {}),
        }  # fmt: skip
        answer = self._document(str(response["id"]), "response", content, bound)
        lease_us = self._store.wall_us() + LEASE_US if unfinished else None
        documents = [
            replace(
                answer,
                parent=self._asked.previous,
                status=str(response["status"]),
                lease_us=lease_us,
            )
        ]
        # A failed or cancelled turn is requested again.
        is_turn = not unfinished and response["status"] not in (FAILED, CANCELLED)
        if self._asked.conversation is not None and is_turn:
            own = await asyncio.to_thread(self._own_items, raw)
            items = (
                self._document(str(item["id"]), "item", item, bound)
                for item in (*own, *response["output"])
            )
            documents += [replace(item, parent=self._asked.conversation) for item in items]
        conversation, begun = self._asked.conversation, self._begun
        refusal = await self._store.store(documents, renews=conversation, replaces=begun)
        self._begun = begun or (unfinished and refusal is None)
        if refusal == CANCELLED:  # before its worker noticed the cancellation
            self.told = ()
            return await self.store({**response, **_CANCELLED}, residency)
        return refusal

    def _own_items(self, raw: bytes) -> list[dict[str, Any]]:
        """Return the conversation's new items with new ids: a client's id may be another's."""
        return name_items(as_items(msgspec.json.decode(raw)), self._name, keep_ids=False)

    def _document(
        self, object_id: str, kind: str, content: Any, residency: Residency
    ) -> StoredDocument:
        return StoredDocument(
            team_id=self._team_id,
            id=object_id,
            kind=kind,
            content=content,
            created_us=self._created_us,
            expires_us=self._store.expires_us,
            residency=residency.value,
        )
