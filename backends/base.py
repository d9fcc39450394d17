"""One seam between the gateway and any model server: open an exchange, read it, close it.

`Backend.open` returns once the response head has arrived (or raises a `backends.errors` kind).
The body is then read as chunks exactly as they came. Closing before the end aborts the work
upstream: a hang-up must never leave an engine generating.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from backends.secret import Secret
from backends.sending import Transmission


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds, each with its own meaning and its own error; `None` switches one off.

    connect: TCP and TLS; head: request sent to response head (for streams of an engine that
    answers its head with the first token this bounds TTFT); idle: between two chunks.
    """

    connect_s: float = 5.0
    head_s: float | None = 60.0
    idle_s: float | None = 60.0


class Call(msgspec.Struct, frozen=True):
    """One upstream request: an OpenAI path under the target's base URL and an encoded body."""

    path: str  # "/chat/completions"
    body: bytes
    stream: bool
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    deadlines: Deadlines = Deadlines()
    content_type: str | None = None  # of a body that is no JSON
    transmission: Transmission = msgspec.field(default_factory=Transmission)


# Takes a piece of a body; returns whether the next may follow at once. It must not raise.
Sink = Callable[[bytes], bool]


class Exchange(Protocol):
    """A response in progress.

    `status` and `headers` (lower-case names) are final. Iterating yields body chunks as read
    from the wire (transfer encoding removed); an upstream that dies raises `UpstreamBroken`,
    never ends silently. `aclose` is idempotent; before the end it aborts upstream.
    """

    status: int
    headers: Mapping[str, str]

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class Backend(Protocol):
    """A target's wire client. One object per endpoint or provider, shared by all requests.

    It states in `Call.transmission` when the first byte leaves, and in each error whether one had.
    `secrets`: what proves who we are there; no text that leaves may hold it.
    """

    @property
    def secrets(self) -> Sequence[Secret]: ...

    async def open(self, call: Call) -> Exchange: ...

    async def aclose(self) -> None: ...
