"""Keeps a chat completion with `store: true`: stored before its end leaves.

The gateway stores it itself, so the target is not asked to.
"""

from collections.abc import MutableMapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gateway.kinds.inference_request import InferenceRequest
from gateway.request.client_response import ClientResponse, Send
from gateway.request.dialects.chat import read_object
from gateway.request.dialects.fields import metadata_of
from gateway.request.dialects.translated_response import NOT_STORED
from gateway.request.store.chunk_fold import completion_of
from gateway.request.store.object_store import ObjectStore
from gateway.request.store.stored_document import StoredDocument
from router.types import Feature

FAILED: Final = 400
Message = MutableMapping[str, Any]


class ChatKeeper:
    """Stands between one reply and its client."""

    def __init__(
        self, store: ObjectStore, asked: InferenceRequest, reply: ClientResponse, team_id: str
    ) -> None:
        """Raise `RequestError` for metadata that cannot be stored."""
        raw = bytes(asked.members.get("metadata", b"null"))
        self._metadata = metadata_of({"metadata": msgspec.json.decode(raw)})
        self._store = store
        self._asked = asked
        self._reply = reply
        self._team_id = team_id
        self._head: Message | None = None
        self._parts: list[bytes] | None = []
        self._left = store.object_bytes

    def wrap(self, send: Send) -> Send:
        """Return what the reply sends through: the head waits for the first part of the body."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._head = message
                if message["status"] >= FAILED:
                    self._parts = None
                return
            data, more = message.get("body", b""), message.get("more_body", False)
            self._take(data)
            refusal = None if more else await self._keep()
            if self._head is not None:
                head, self._head = self._head, None
                if refusal is not None:
                    named = (NOT_STORED, refusal.encode())
                    head = {**head, "headers": [*head["headers"], named]}
                await send(head)
            await send(message)

        return sending

    def _take(self, data: bytes) -> None:
        if self._parts is not None:
            self._left -= len(data)
            if self._left < 0:
                self._parts = []
            else:
                self._parts.append(data)

    async def _keep(self) -> str | None:
        """Store the answer; return why not, if it should be stored and is not."""
        parts, self._parts = self._parts, None
        if parts is None or self._reply.broken:
            return None
        if self._left < 0:
            return "too_large"
        text = b"".join(parts)
        completion = completion_of(text) if self._asked.stream else read_object(text)
        if completion is None or not isinstance(completion.get("id"), str):
            return "unreadable"
        members = self._asked.members
        content = {
            "completion": {**completion, "metadata": self._metadata},
            "messages": msgspec.json.decode(bytes(members["messages"])),
        }
        document = StoredDocument(
            team_id=self._team_id,
            id=completion["id"],
            kind="chat",
            content=content,
            created_us=self._store.wall_us(),
            expires_us=self._store.expires_us,
            residency=self._reply.residency.value,
        )
        return await self._store.store([document], is_new=True)


def without_store(asked: InferenceRequest) -> InferenceRequest:
    """Return the request as a target gets it that is not to keep the answer."""
    left_out = ("store", "metadata")
    members = {name: value for name, value in asked.members.items() if name not in left_out}
    return replace(asked, members=members, features=asked.features - {Feature.STORE})
