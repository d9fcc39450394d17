"""The interface of stored answers for the Responses paths; each inference API has one."""

from typing import Protocol

from gateway.errors import RequestError
from gateway.http.body import Members
from gateway.kinds.inference_request import InferenceRequest
from gateway.request.client_response import ClientResponse
from gateway.request.dialects.answer_keeper import AnswerKeeper
from gateway.request.dialects.base import Purpose
from gateway.request.store.chat_keeper import ChatKeeper, without_store
from gateway.request.store.compaction import CompactionKeeper
from gateway.request.store.continued_request import RequestContinuation, refuse_stored
from gateway.request.store.object_store import ObjectStore
from gateway.request.store.response_keeper import ResponseKeeper


class ResponseStorage(Protocol):
    """Source of keepers: `StoredResponses`, or `NoStoredResponses`."""

    async def open_request(
        self, members: Members, team_id: str, request_id: str, *, purpose: Purpose
    ) -> AnswerKeeper | None:
        """Expand what the request refers to. `purpose`: what its path is asked for.

        Raises `RequestError` for what is not there, or where nothing is stored.
        """

    def open_chat(
        self, asked: InferenceRequest, team_id: str, reply: ClientResponse
    ) -> InferenceRequest:
        """Return a chat request with `store: true` as its target gets it."""


class StoredResponses:
    """Answers are stored."""

    def __init__(self, store: ObjectStore, limit_bytes: int) -> None:
        """`limit_bytes`: the most that a whole conversation may take."""
        self._store = store
        self._continuation = RequestContinuation(store, limit_bytes)

    async def open_request(
        self, members: Members, team_id: str, request_id: str, *, purpose: Purpose
    ) -> AnswerKeeper | None:
        """Expand what the request refers to, and say what becomes of its answer."""
        asked = await self._continuation.expand(members, team_id, stores=purpose == "answer")
        if purpose == "compaction":
            return CompactionKeeper(self._store, team_id, asked.residency)
        return ResponseKeeper(self._store, asked, team_id=team_id, request_id=request_id)

    def open_chat(
        self, asked: InferenceRequest, team_id: str, reply: ClientResponse
    ) -> InferenceRequest:
        """Store the completion here; the target stores none."""
        keeper = ChatKeeper(self._store, asked, reply, team_id)
        reply.wrap_send(keeper.wrap)
        reply.on_masked = keeper.allow
        return without_store(asked)


class NoStoredResponses:
    """Nothing is stored: what needs it is refused at its first turn.

    `unasked`: also a request that leaves `store` out, which OpenAI's API stores.
    """

    def __init__(self, *, unasked: bool) -> None:
        self._unasked = unasked

    async def open_request(
        self, members: Members, team_id: str, request_id: str, *, purpose: Purpose
    ) -> AnswerKeeper | None:
        """Refuse a request that needs a stored answer, or asks for one."""
        del team_id, request_id
        if purpose == "compaction":
            raise RequestError(
                "unsupported",
                "Conversations are not compacted here: answers are not kept. Send fewer turns.",
            )
        refuse_stored(members, unasked=self._unasked and purpose == "answer")
        return None

    def open_chat(
        self, asked: InferenceRequest, team_id: str, reply: ClientResponse
    ) -> InferenceRequest:
        """Leave it to targets that store completions."""
        del team_id, reply
        return asked
