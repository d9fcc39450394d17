"""A dialect: it reads a request as chat and writes answers and errors in its own form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from gateway.errors import RequestError
from gateway.http.body import Members
from gateway.http.connection import Header
from gateway.kinds.native_request import NativeRequest
from gateway.request.dialects.response_encoder import ResponseEncoder
from router.types import Feature

# An answer; how many tokens a request has; or the conversation made short.
Purpose = Literal["answer", "count", "compaction"]


@dataclass(frozen=True, slots=True)
class DecodedRequest:
    """A request as chat's members, and who tells its answer.

    `voice` takes the request's id and the wall clock's seconds; `session` is what the dialect has
    for one. `marked` are members in their form for targets that take marks of what to cache,
    `ignored` names of those that have no form in chat and are left out. `features`: what a target
    must offer beside what chat's members ask for, each with the place that asks for it. `instead`:
    what is asked where no target can serve this, without media of earlier turns. `shorten`: the
    same without its oldest turns, by at least so many bytes; None where all must stay. `native`:
    all of it, which `members` only stand for, of a request that chat has no form for.
    `standard_tier`: the client wants no other service tier, for which each target has its own word.
    """

    members: Members
    voice: Callable[[str, int], ResponseEncoder]
    session: str | None = None
    marked: Members = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    features: Mapping[Feature, str] = field(default_factory=dict)
    instead: "DecodedRequest | None" = None
    native: NativeRequest | None = None
    shorten: "Callable[[int], DecodedRequest | None] | None" = None
    standard_tier: bool = False


class Dialect(Protocol):
    """`purpose`: what the path is asked for. `continues`: it may go on from stored answers."""

    @property
    def purpose(self) -> Purpose: ...

    @property
    def continues(self) -> bool: ...

    @property
    def ping(self) -> bytes:
        """Bytes that tell a client that a silent stream goes on."""

    def count_document(self, tokens: int) -> dict[str, Any]:
        """Return the answer of a path that counts."""

    def decode_request(self, members: Members) -> DecodedRequest:
        """Raises `RequestError` with a place of this dialect."""

    def whole_request(self, members: Members, refusal: RequestError) -> DecodedRequest | None:
        """Return a request that chat refused and a target of this dialect may serve."""

    def native_request(self, members: Members) -> NativeRequest | None:
        """Return what goes to targets that speak this dialect as it is."""

    def translate_error(
        self, body: bytes, status: int, request_id: str, *, of_chat: bool = True
    ) -> bytes:
        """Chat's error body in this dialect; `of_chat`: what it names has chat's names, too."""

    def headers(self, request_id: str) -> Sequence[Header]:
        """Return the headers of a dialect beside those of every answer."""
