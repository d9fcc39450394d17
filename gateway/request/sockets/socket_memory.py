"""Memory of each WebSocket's last answer, if it is not stored, for the next turn.

A worker keeps one conversation per socket within a common limit of bytes. Above that the least
recently used is dropped, and its client sends the whole conversation again.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gateway.errors import RequestError
from gateway.http.body import Members, decode_member, encode_raw
from gateway.kinds.inference_request import InferenceRequest
from gateway.request.client_response import ClientResponse
from gateway.request.dialects.answer_keeper import AnswerKeeper, KeptAnswer
from gateway.request.dialects.base import Purpose
from gateway.request.store.continued_request import (
    OUTPUT,
    no_previous_error,
    refuse_orphans,
    too_long_error,
)
from gateway.request.store.response_items import as_items
from gateway.request.store.response_keeper import FAILED
from gateway.request.store.response_storage import ResponseStorage
from router.policy import tighten
from router.types import Residency

PREVIOUS: Final = "previous_response_id"


@dataclass(frozen=True, slots=True)
class HeldConversation:
    """An answer with everything before it; `items` are the conversation's, as JSON."""

    response_id: str
    items: tuple[msgspec.Raw, ...]
    residency: Residency

    @property
    def size(self) -> int:
        """Return the approximate size in bytes."""
        return sum(len(bytes(item)) for item in self.items)


class SocketMemory:
    """The conversations of one worker's sockets; any unique object identifies a socket."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held: OrderedDict[object, HeldConversation] = OrderedDict()
        self.size = 0

    def find(self, socket: object, response_id: str | None) -> HeldConversation | None:
        """Return the socket's conversation, if it ends with this answer."""
        held = self._held.get(socket)
        return held if held is not None and held.response_id == response_id else None

    def hold(self, socket: object, conversation: HeldConversation) -> None:
        """Keep the conversation as the socket's last one, unless it alone exceeds the limit."""
        self.forget(socket)
        if conversation.size > self._limit_bytes:
            return
        self._held[socket] = conversation
        self.size += conversation.size
        while self.size > self._limit_bytes:
            self.forget(next(iter(self._held)))

    def forget(self, socket: object) -> None:
        """Drop the socket's conversation."""
        held = self._held.pop(socket, None)
        if held is not None:
            self.size -= held.size


class SocketStorage:
    """Storage of one turn: the socket's memory first, then stored answers.

    `warms_up`: the turn needs no answer and only starts a conversation.
    """

    def __init__(
        self,
        memory: SocketMemory,
        socket: object,
        behind: ResponseStorage,
        limit_bytes: int,
        *,
        warms_up: bool = False,
    ) -> None:
        """Create the storage; `limit_bytes` is the maximum size of a whole conversation."""
        self._memory = memory
        self._socket = socket
        self._behind = behind
        self._limit_bytes = limit_bytes
        self.warms_up = warms_up

    async def open_request(
        self, members: Members, team_id: str, request_id: str, *, purpose: Purpose
    ) -> AnswerKeeper:
        """Expand `input` by the remembered conversation; the rest is as without a socket."""
        previous = decode_member(members, PREVIOUS, str)
        held = self._memory.find(self._socket, previous)
        if held is not None:
            self._expand(members, held)
        try:
            inner = await self._behind.open_request(members, team_id, request_id, purpose=purpose)
        except RequestError as error:
            if error.kind == "unsupported" and error.param == PREVIOUS and previous is not None:
                raise no_previous_error(previous, previous) from error
            raise
        if held is not None:
            members[PREVIOUS] = encode_raw(previous)
        tightest = Residency.ANY if held is None else held.residency
        if inner is not None:
            tightest = tighten(tightest, inner.residency)
        items = _raw_items(bytes(members.get("input", b"null")))
        return SocketKeeper(self._memory, self._socket, inner, tightest, items)

    def _expand(self, members: Members, held: HeldConversation) -> None:
        own = as_items(decode_member(members, "input", Any))
        if OUTPUT in bytes(members.get("input", b"")):
            refuse_orphans([msgspec.json.decode(item) for item in held.items], own)
        del members[PREVIOUS]
        members["input"] = encode_raw([*held.items, *own])
        if len(bytes(members["input"])) > self._limit_bytes:
            raise too_long_error(self._limit_bytes)

    def open_chat(
        self, asked: InferenceRequest, team_id: str, reply: ClientResponse
    ) -> InferenceRequest:
        """Pass the request on to stored answers: a socket has only the Responses API."""
        return self._behind.open_chat(asked, team_id, reply)


class SocketKeeper:
    """A keeper of one turn's answer in memory, unless it is stored, where all sockets find it."""

    def __init__(
        self,
        memory: SocketMemory,
        socket: object,
        inner: AnswerKeeper | None,
        residency: Residency,
        items: list[msgspec.Raw],
    ) -> None:
        """Create the keeper; `items` are the input with everything before it."""
        self._memory = memory
        self._socket = socket
        self._inner = inner
        self._items = items
        self._is_sent = True  # `items` is what its target gets
        self.residency = residency

    @property
    def background(self) -> bool:
        """Return False: a socket's answer is always generated for its client."""
        return False

    @property
    def own_members(self) -> Members:
        """Return the stored part of the request; without one, everything remembered."""
        stored = {} if self._inner is None else self._inner.own_members
        return stored or {"input": encode_raw(self._items)}

    def withhold(self) -> None:
        """Do nothing: a socket's answers are stored only at their end."""

    def allow(self, members: Members) -> None:
        """Store or remember these members in place of what was sent."""
        if self._inner is not None and self._inner.own_members:
            self._inner.allow(members)
            self._is_sent = "input" not in members
        elif "input" in members:
            self._items = _raw_items(bytes(members["input"]))

    async def keep(self, document: Mapping[str, Any], residency: Residency) -> KeptAnswer:
        """Store the answer if requested, and else remember it."""
        kept = KeptAnswer(document)
        if self._inner is not None:
            kept = await self._inner.keep(document, residency)
        if _is_stored(kept.document):
            self._memory.forget(self._socket)
        elif document.get("status") != FAILED and self._is_sent:
            output = [encode_raw(item) for item in document["output"]]
            items = (*self._items, *output)
            bound = tighten(residency, self.residency)
            self._memory.hold(self._socket, HeldConversation(str(document["id"]), items, bound))
        return kept


def _is_stored(document: Mapping[str, Any]) -> bool:
    """Return whether the answer repeats `store: true`, which may still be raw JSON."""
    said = document.get("store")
    return said is True or (isinstance(said, msgspec.Raw) and bytes(said) == b"true")


def _raw_items(given: bytes) -> list[msgspec.Raw]:
    if given[:1] == b"[":
        return msgspec.json.decode(given, type=list[msgspec.Raw])
    return [encode_raw(item) for item in as_items(msgspec.json.decode(given))]
