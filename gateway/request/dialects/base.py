"""Interface of a dialect: decodes requests to chat and encodes answers and errors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from gateway.errors import RequestError
from gateway.http.body import Members
from gateway.http.connection import Header
from gateway.kinds.native_request import NativeRequest
from gateway.request.dialects.response_encoder import ResponseEncoder
from router.types import Feature

# An answer, the number of tokens of a request, or a shortened conversation.
Purpose = Literal["answer", "count", "compaction"]


@dataclass(frozen=True, slots=True)
class DecodedRequest:
    """A request as chat members, with the encoder of its answer.

    `voice` makes the encoder from the request's id and the wall clock in seconds. `session` is the
    dialect's session id. `marked` has members with cache marks, for targets that take them;
    `ignored` names members without a form in chat. `features` are what a target must offer beyond
    what chat members ask for, each with its place. `instead` is the request without media of
    earlier turns, planned if no target can serve this one. `shorten` drops the oldest turns, at
    least that many bytes; None if all must stay. `native` is the original request, if chat cannot
    express it. `standard_tier`: the client wants only the standard service tier, which each target
    names differently.
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
    """A format of requests and answers; implemented by `MessagesDialect`, `ResponsesDialect`.

    `purpose` is what the path returns; `continues`: it may continue stored answers.
    """

    @property
    def purpose(self) -> Purpose: ...

    @property
    def continues(self) -> bool: ...

    @property
    def ping(self) -> bytes:
        """Return the bytes of a keep-alive in a silent stream."""

    def count_document(self, tokens: int) -> dict[str, Any]:
        """Return the answer of a path that counts tokens."""

    def decode_request(self, members: Members) -> DecodedRequest:
        """Return the request as chat. Raises `RequestError` that names a member of this dialect."""

    def whole_request(self, members: Members, refusal: RequestError) -> DecodedRequest | None:
        """Return a request that chat refused and a target of this dialect may serve, if so."""

    def native_request(self, members: Members) -> NativeRequest | None:
        """Return the request for targets that take this dialect unchanged."""

    def translate_error(
        self, body: bytes, status: int, request_id: str, *, of_chat: bool = True
    ) -> bytes:
        """Return chat's error body in this dialect; `of_chat`: it has chat's member names."""

    def headers(self, request_id: str) -> Sequence[Header]:
        """Return the dialect's own headers of an answer."""
