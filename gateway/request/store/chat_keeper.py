"""Store of chat completions with `store: true`, written before their end is sent.

The gateway stores them itself, so the target is not asked to. The id is that of the request.
"""

from collections.abc import MutableMapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from backends.sse import EventSplitter, data_spans
from gateway.kinds.inference_request import InferenceRequest
from gateway.request.client_response import ClientResponse, Send
from gateway.request.dialects.chat import read_object, usage_object
from gateway.request.dialects.fields import metadata_of
from gateway.request.dialects.translated_response import NOT_STORED
from gateway.request.idempotency.response_replay import REPLAYED
from gateway.request.store.chunk_fold import completion_of
from gateway.request.store.object_store import ObjectStore
from gateway.request.store.stored_document import StoredDocument
from ledger.journals.records import TokenCounts
from router.types import Feature

FAILED: Final = 400
LENGTH: Final = b"content-length"
Message = MutableMapping[str, Any]


class ChatKeeper:
    """A filter between a response and its client that replaces the answer's id and stores it.

    A target may use one id for all its answers, and a stream has sent it before that is known.
    """

    def __init__(
        self, store: ObjectStore, asked: InferenceRequest, reply: ClientResponse, team_id: str
    ) -> None:
        """Create the keeper. Raises `RequestError` for metadata that cannot be stored."""
        raw = bytes(asked.members.get("metadata", b"null"))
        self._metadata = metadata_of({"metadata": msgspec.json.decode(raw)})
        self._store = store
        self._asked = asked
        self._messages = asked.members["messages"]
        self._reply = reply
        self._team_id = team_id
        self._head: Message | None = None
        self._id = ""
        self._events = EventSplitter()
        self._answered = self._keeps = True
        self._refusal: str | None = None
        self._parts: list[bytes] = []
        self._left = store.object_bytes

    def wrap(self, send: Send) -> Send:
        """Return the wrapped send, which delays the head until the first part of the body."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._open(message)
                return
            more = message.get("more_body", False)
            data = self._take(message.get("body", b""), more=more)
            if not more:
                self._refusal = await self._keep()
                data = self._end(data)
            if more and not data:
                return
            if self._head is not None:
                head, self._head = self._head, None
                await send(self._told(head, None if more else len(data)))
            await send({**message, "body": data})

        return sending

    def allow(self, asked: InferenceRequest) -> None:
        """Store the messages of this request, which may be masked."""
        self._messages = asked.members["messages"]

    def _open(self, head: Message) -> None:
        """Read the head. A replay has the id of the first request, and is not stored again."""
        headers = dict(head["headers"])
        named: bytes = headers.get(b"x-request-id", self._reply.request_id.encode())
        self._head, self._id = head, f"chatcmpl-{named.decode().removeprefix('req_')}"
        self._answered = head["status"] < FAILED
        self._keeps = self._answered and REPLAYED not in head["headers"]

    def _told(self, head: Message, size: int | None) -> Message:
        """Return the head to send; `size` is that of a body with one part."""
        headers = head["headers"]
        if size is not None:
            length = (LENGTH, str(size).encode())
            headers = [length if header[0] == LENGTH else header for header in headers]
        if self._refusal is not None:
            headers = [*headers, (NOT_STORED, self._refusal.encode())]
        return {**head, "headers": headers}

    def _take(self, data: bytes, *, more: bool) -> bytes:
        """Return the bytes to send now: whole events, or a complete answer in one piece."""
        if not self._answered:
            return data
        stream = self._asked.stream
        if stream:
            told = self._events.feed(data)
            rest = [] if more else [bytes(self._events.rest)]
            data = b"".join([*(_renamed_event(event, self._id) for event in told), *rest])
        elif self._left < 0:
            return data
        self._left -= len(data)
        if not stream or self._left >= 0:
            self._parts.append(data)
        if self._left < 0 and self._keeps:
            self._refusal, self._keeps = "too_large", False
        if stream:
            return data
        if more and self._left >= 0:
            return b""
        text, self._parts = b"".join(self._parts), []
        if self._left >= 0:
            text = _renamed(text, self._id)
            self._parts.append(text)
        return text

    def _end(self, data: bytes) -> bytes:
        """Add to a stream, whose head was sent, that the answer is not stored."""
        if self._refusal is None or not self._asked.stream:
            return data
        chunk = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._store.wall_us() // 1_000_000,
            "model": self._asked.model,
            "choices": [{"index": 0, "delta": {}, "finish_reason": None}],
            "store": False,
            "not_stored": self._refusal,
        }
        told, done, after = data.rpartition(b"data: [DONE]")
        event = b"data: " + msgspec.json.encode(chunk) + b"\n\n"
        return told + event + done + after if done else data + event

    async def _keep(self) -> str | None:
        """Store the answer. Return the reason if it should be stored and is not."""
        parts, self._parts = self._parts, []
        if not self._keeps or self._reply.broken:
            return self._refusal
        text = b"".join(parts)
        completion = completion_of(text) if self._asked.stream else read_object(text)
        if completion is None or not isinstance(completion.get("id"), str):
            return "unreadable"
        tokens = self._tokens()
        if not completion.get("usage") and tokens is not None:  # a stream tells it where asked
            completion["usage"] = usage_object(tokens)
        content = {
            "completion": {**completion, "metadata": self._metadata},
            "messages": msgspec.json.decode(bytes(self._messages)),
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

    def _tokens(self) -> TokenCounts | None:
        """Return the answer's tokens as booked, for an answer of the cache as they were then."""
        attempt, use = self._reply.attempt, self._reply.cache_use
        if attempt is not None:
            return attempt.booked
        return None if use is None else use.tokens


def _renamed_event(event: bytes, name: str) -> bytes:
    spans = data_spans(event)
    if not spans or len(spans) != 1:
        return event
    start, stop = spans[0]
    return event[:start] + _renamed(event[start:stop], name) + event[stop:]


def _renamed(text: bytes, name: str) -> bytes:
    """Return a completion or chunk with this id, otherwise unchanged."""
    try:
        members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return text
    if not members.keys() & {"id", "choices"}:
        return text
    return msgspec.json.encode({**members, "id": name})


def without_store(asked: InferenceRequest) -> InferenceRequest:
    """Return the request for a target that must not store the answer."""
    left_out = ("store", "metadata")
    members = {name: value for name, value in asked.members.items() if name not in left_out}
    return replace(asked, members=members, features=asked.features - {Feature.STORE})
