"""The interface between the gateway and any model server: open, read, close an exchange.

`Backend.open` returns once the response head has arrived, or raises a kind of `backends.errors`.
The body is then read in chunks as they arrived. Closing before the end aborts the work upstream, so
that no engine generates for a disconnected client.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from backends.secret import Secret
from backends.sending import Transmission


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Timeouts in seconds, each with its own error; `None` disables one.

    connect: TCP and TLS. head: from the sent request to the response head (for streams of an engine
    that sends its head with the first token, this bounds TTFT). idle: between two chunks.
    """

    connect_s: float = 5.0
    head_s: float | None = 60.0
    idle_s: float | None = 60.0


class Call(msgspec.Struct, frozen=True):
    """One upstream request: an OpenAI path under the target's base URL, and an encoded body."""

    path: str  # "/chat/completions"
    body: bytes
    stream: bool
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    deadlines: Deadlines = Deadlines()
    content_type: str | None = None  # of a body that is no JSON
    transmission: Transmission = msgspec.field(default_factory=Transmission)


# Receives a chunk of a body and returns whether it accepts the next one. It must not raise.
Sink = Callable[[bytes], bool]


class Exchange(Protocol):
    """A response in progress. All wire clients return one.

    `status` and `headers` (lower-case names) are final. Iteration yields body chunks as read from
    the wire, without transfer encoding. An upstream that breaks off raises `UpstreamBroken`, never
    a silent end. `aclose` is idempotent; before the end it aborts the upstream.
    """

    status: int
    headers: Mapping[str, str]

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class Backend(Protocol):
    """A target's wire client, one object per endpoint or provider, shared by all requests.

    The clients of `backends.providers` implement it. It records in `Call.transmission` when the
    first byte leaves, and in each error whether a byte had left. `secrets` are its credentials,
    which no outgoing text may contain.
    """

    @property
    def secrets(self) -> Sequence[Secret]: ...

    async def open(self, call: Call) -> Exchange: ...

    async def aclose(self) -> None: ...
