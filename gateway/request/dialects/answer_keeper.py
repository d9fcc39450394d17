"""Interfaces of stores that change or keep a whole answer before its end is sent."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from gateway.http.body import Members
from router.types import Residency


class KeptAnswer(NamedTuple):
    """An answer as the client gets it; `refusal` says why it is not stored, if it should be."""

    document: Mapping[str, Any]
    refusal: str | None = None


class AnswerKeeper(Protocol):
    """A store for one answer; implemented by `ResponseKeeper`."""

    @property
    def residency(self) -> Residency:
        """Return the residency that the request inherits from the answer it continues."""

    @property
    def background(self) -> bool:
        """Return whether the answer is generated in the background, without its client."""

    @property
    def own_members(self) -> Members:
        """Return the part of the request that is stored with its answer, as it was sent."""

    def withhold(self) -> None:
        """Store nothing of the request until it is allowed."""

    def allow(self, members: Members) -> None:
        """Store these members in place of `own_members`, as content rules allow."""

    async def keep(self, document: Mapping[str, Any], residency: Residency) -> KeptAnswer:
        """Store the whole answer; `residency` is the tightest by which its target was chosen."""


@runtime_checkable
class BackgroundKeeper(AnswerKeeper, Protocol):
    """A store that also takes unfinished answers; `told` has the events sent so far."""

    told: Sequence[Sequence[Any]]

    async def store(self, response: Mapping[str, Any], residency: Residency) -> str | None:
        """Store the answer so far. Return the reason if it is not stored."""


class ConnectionStorage(Protocol):
    """Storage in a connection's memory; implemented in `gateway.request.sockets`."""

    @property
    def warms_up(self) -> bool:
        """Return whether the request needs no answer and only starts a conversation."""

    async def open_request(
        self, members: Members, team_id: str, request_id: str, *, purpose: Any
    ) -> AnswerKeeper:
        """Expand what the request refers to; return the keeper of its answer."""
