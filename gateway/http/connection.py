"""Connection features beyond ASGI, provided by this gateway's HTTP protocol.

ASGI cannot drop a connection, report a disconnect without a waiting task, or send an answer in one
piece. With another server the callers use plain ASGI.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

CONNECTION = "breakeven.connection"
Header = tuple[bytes, bytes]


class RequestConnection(Protocol):
    """Connection of the current request, implemented by `BoundedProtocol`."""

    def abort(self) -> None:
        """Drop the connection."""

    def take_body(self) -> bytes | None:
        """Return the request's body once it is complete, else `None`. Call it once per request."""

    def listen(self, on_gone: Callable[[], None]) -> Callable[[], None]:
        """Call `on_gone` when the client disconnects. Return a function that stops it."""

    def push(self, part: bytes) -> bool:
        """Send a part of the body after the head; return False if the part must wait."""

    def unsent(self) -> int:
        """Return the bytes that were sent but not yet received by the client."""

    def answer(self, status: int, headers: Sequence[Header], data: bytes) -> bool:
        """Send a whole answer; return False if it must wait or needs the general path."""


def connection_of(scope: Any) -> RequestConnection | None:
    """Return the request's connection, or `None` if the server does not provide it."""
    found: RequestConnection | None = (scope.get("extensions") or {}).get(CONNECTION)
    return found
