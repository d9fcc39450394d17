"""The interface of whoever changes or keeps a whole answer before its end leaves."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from gateway.http.body import Members
from router.types import Residency


class KeptAnswer(NamedTuple):
    """The answer as its client is told it. `refusal`: why it is not stored, if it should be."""

    document: Mapping[str, Any]
    refusal: str | None = None


class AnswerKeeper(Protocol):
    """Stores answers: `gateway.request.store.response_keeper.ResponseKeeper`."""

    @property
    def residency(self) -> Residency:
        """Return the residency that the request inherits from the answer it continues."""

    @property
    def background(self) -> bool:
        """Whether the answer is made without its client."""

    @property
    def own_members(self) -> Members:
        """Return the part of the request that is stored beside its answer, as it was sent."""

    def withhold(self) -> None:
        """Store nothing of the request until it is allowed."""

    def allow(self, members: Members) -> None:
        """Store this in place of `own_members`: what the request may say."""

    async def keep(self, document: Mapping[str, Any], residency: Residency) -> KeptAnswer:
        """Take the whole answer. `residency`: the tightest that its target was chosen by."""


@runtime_checkable
class BackgroundKeeper(AnswerKeeper, Protocol):
    """Stores an answer that is not whole, too. `told`: the events that a client had of it."""

    told: Sequence[Sequence[Any]]

    async def store(self, response: Mapping[str, Any], residency: Residency) -> str | None:
        """Store the answer as far as it is; return why not, if it is not stored."""


class ConnectionStorage(Protocol):
    """Storage that a connection remembers answers in: `gateway.request.sockets.socket_memory`."""

    @property
    def warms_up(self) -> bool:
        """Whether the request asks for no answer, only to be gone on from."""

    async def open_request(
        self, members: Members, team_id: str, request_id: str, *, purpose: Any
    ) -> AnswerKeeper:
        """Expand what the request refers to, and say what becomes of its answer."""
