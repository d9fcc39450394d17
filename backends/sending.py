"""Whether a byte of a request has left: stated by what owns the connection.

A backend sets `begun` to `False` when it takes a call and to `True` right before the first write.
Where it says nothing, `begun` stays `None`, and a byte may have left. No error's class tells it:
a timeout can be one of the connection or of the answer.
"""

from collections.abc import Mapping
from typing import Any

from backends.errors import BackendError

EXTENSION = "breakeven.transmission"  # of an httpx request: the `Transmission` to state it in


class Transmission:
    """State of one call: whether a byte of it has left, and which of its members were ignored."""

    __slots__ = ("_before", "begun", "expected", "ignored")

    def __init__(self) -> None:
        self.begun: bool | None = None
        self.ignored: tuple[str, ...] = ()  # members of the body that the backend left out
        self.expected: Mapping[bytes, str] = {}  # words that shall leave: of which members
        self._before = False

    @property
    def possible(self) -> bool:
        """Return whether a byte may have left."""
        return self.begun is not False

    def takes(self) -> None:
        """The backend takes the call and will state what leaves."""
        if self.begun is None:
            self.begun = False

    def compare_body(self, sent: bytes) -> None:
        """Name as ignored what the body that leaves does not have of what was expected."""
        lost = (name for words, name in self.expected.items() if words not in sent)
        self.ignored += tuple(name for name in lost if name not in self.ignored)

    def judge(self, error: BackendError) -> BackendError:
        """Return the error with the fact in it; where nothing was stated, its kind's own holds."""
        if self.begun is not None:
            error.sent = self.begun
        return error

    async def trace(self, event: str, told: Mapping[str, Any]) -> None:
        """Follow one request of httpcore, as its extension `trace`."""
        self.note(event, told)

    def note(self, event: str, told: Mapping[str, Any]) -> None:
        """Follow one request of httpcore's clients that block.

        httpcore encodes the head before it writes: a head with characters that no head may have
        fails there, and nothing has left.
        """
        self.takes()
        if event == "http11.send_request_headers.started":
            self._before, self.begun = bool(self.begun), True
        elif event == "http11.send_request_headers.failed":
            import httpcore  # noqa: PLC0415  (its caller has; most processes need none)

            unsent = isinstance(told.get("exception"), httpcore.LocalProtocolError)
            self.begun = self._before if unsent else True
