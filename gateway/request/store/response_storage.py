"""Interface of stored answers for the Responses paths; each inference API has one."""

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
    """A source of keepers; implemented by `StoredResponses` and `NoStoredResponses`."""

    async def open_request(
        self, members: Members, team_id: str, request_id: str, *, purpose: Purpose
    ) -> AnswerKeeper | None:
        """Expand what the request refers to, for a path of this purpose; return its keeper.

        Raises `RequestError` for a missing object, or where nothing is stored.
        """

    def open_chat(
        self, asked: InferenceRequest, team_id: str, reply: ClientResponse
    ) -> InferenceRequest:
        """Return a chat request with `store: true` as its target gets it."""


class StoredResponses:
    """Storage where answers are stored."""

    def __init__(self, store: ObjectStore, limit_bytes: int) -> None:
        """Create the storage; `limit_bytes` is the maximum size of a whole conversation."""
        self._store = store
        self._continuation = RequestContinuation(store, limit_bytes)

    async def open_request(
        self, members: Members, team_id: str, request_id: str, *, purpose: Purpose
    ) -> AnswerKeeper | None:
        """Expand what the request refers to, and return the keeper of its answer."""
        asked = await self._continuation.expand(members, team_id, stores=purpose == "answer")
        if purpose == "compaction":
            return CompactionKeeper(self._store, team_id, asked.residency)
        return ResponseKeeper(self._store, asked, team_id=team_id, request_id=request_id)

    def open_chat(
        self, asked: InferenceRequest, team_id: str, reply: ClientResponse
    ) -> InferenceRequest:
        """Store the completion here, so that the target stores none."""
        keeper = ChatKeeper(self._store, asked, reply, team_id)
        reply.wrap_send(keeper.wrap)
        reply.on_masked = keeper.allow
        return without_store(asked)


class NoStoredResponses:
    """Storage where nothing is stored: requests that need it are refused at the first turn.

    `unasked`: also those without `store`, which OpenAI's API would store.
    """

    def __init__(self, *, unasked: bool) -> None:
        self._unasked = unasked

    async def open_request(
        self, members: Members, team_id: str, request_id: str, *, purpose: Purpose
    ) -> AnswerKeeper | None:
        """Refuse a request that needs a stored answer, or wants one stored."""
        del team_id, request_id
        if purpose == "compaction":
            raise RequestError(
                "unsupported",
                "This gateway does not store answers, so it cannot compact conversations. "
                "Send fewer turns.",
            )
        refuse_stored(members, unasked=self._unasked and purpose == "answer")
        return None

    def open_chat(
        self, asked: InferenceRequest, team_id: str, reply: ClientResponse
    ) -> InferenceRequest:
        """Return the request unchanged, for targets that store completions."""
        del team_id, reply
        return asked
