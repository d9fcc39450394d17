"""Connection features beyond ASGI's messages, where our own protocol serves.

ASGI has no word for dropping a connection, for hearing of a hang-up without a task that waits for
it, or for answering in one piece. Under another server all of that goes ASGI's own way.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

CONNECTION = "breakeven.connection"
Header = tuple[bytes, bytes]


class RequestConnection(Protocol):
    """Each method is about the request in work."""

    def abort(self) -> None:
        """Drop the connection."""

    def take_body(self) -> bytes | None:
        """Its body, if all of it is here; asked for once."""

    def listen(self, on_gone: Callable[[], None]) -> Callable[[], None]:
        """Call it when the client hangs up; returns what ends that."""

    def push(self, part: bytes) -> bool:
        """Send a part of the answer, whose head is out; False if that must wait."""

    def unsent(self) -> int:
        """Bytes that were sent and that its client has not taken."""

    def answer(self, status: int, headers: Sequence[Header], data: bytes) -> bool:
        """Send all of an answer; False if that must wait or is not as plain as usual."""


def connection_of(scope: Any) -> RequestConnection | None:
    """The request's connection, where the server offers it."""
    found: RequestConnection | None = (scope.get("extensions") or {}).get(CONNECTION)
    return found
