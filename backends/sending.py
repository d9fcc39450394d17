"""Tracking of whether a byte of a request has left, by the owner of the connection.

A backend sets `begun` to `False` when it accepts a call, and to `True` right before the first
write. `None` is unknown, and a byte may have left. An error's class cannot show it: a timeout may
be that of the connection or of the answer.
"""

from collections.abc import Mapping
from typing import Any

from backends.errors import BackendError

EXTENSION = "breakeven.transmission"  # of an httpx request: the `Transmission` to state it in


class Transmission:
    """State of one call: whether a byte of it has left, and which members were ignored."""

    __slots__ = ("_before", "_lost", "begun", "expected", "ignored")

    def __init__(self) -> None:
        self.begun: bool | None = None
        self.ignored: tuple[str, ...] = ()  # members of the body that the backend left out
        self.expected: Mapping[bytes, str] = {}  # words that shall leave: of which members
        self._before = False
        self._lost: tuple[str, ...] = ()  # of `ignored`, what no body had so far

    @property
    def possible(self) -> bool:
        """Return whether a byte may have left."""
        return self.begun is not False

    def takes(self) -> None:
        """Record that the backend accepts the call and will track sent bytes."""
        if self.begun is None:
            self.begun = False

    def compare_body(self, sent: bytes) -> None:
        """Name as ignored what no body that left so far has of what was expected.

        LiteLLM may ask some servers about a model before it sends the request itself.
        """
        self.expected = {words: name for words, name in self.expected.items() if words not in sent}
        told = tuple(name for name in self.ignored if name not in self._lost)
        self._lost = tuple(
            name for name in dict.fromkeys(self.expected.values()) if name not in told
        )
        self.ignored = told + self._lost

    def judge(self, error: BackendError) -> BackendError:
        """Return the error with the recorded state; if unknown, the default of its class stays."""
        if self.begun is not None:
            error.sent = self.begun
        return error

    async def trace(self, event: str, told: Mapping[str, Any]) -> None:
        """Follow one request of httpcore, as its `trace` extension."""
        self.note(event, told)

    def note(self, event: str, told: Mapping[str, Any]) -> None:
        """Follow one request of httpcore's blocking clients.

        httpcore encodes the head before it writes: a head with invalid characters fails there, and
        nothing has left.
        """
        self.takes()
        if event == "http11.send_request_headers.started":
            self._before, self.begun = bool(self.begun), True
        elif event == "http11.send_request_headers.failed":
            import httpcore  # noqa: PLC0415  (its caller has; most processes need none)

            unsent = isinstance(told.get("exception"), httpcore.LocalProtocolError)
            self.begun = self._before if unsent else True
