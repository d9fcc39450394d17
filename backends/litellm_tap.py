"""The transport under one LiteLLM call: shares the pool, but can end its own answer at once.

LiteLLM's streams do not close their connection when they are closed, so a client that leaves
would leave a provider generating. The tap keeps hold of the answers of its call and of their last
bytes: a stream whose provider never said that it was over must not pass for a whole one.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress

import httpx

from backends.errors import UpstreamBroken

_TAIL_BYTES = 512
# What a provider's stream carries last; LiteLLM would make up a finish reason without it.
_ENDINGS = {"anthropic": b'"message_stop"'}


class Tap(httpx.AsyncBaseTransport):
    """A transport for one call; closing it leaves the shared one open."""

    def __init__(self, shared: httpx.AsyncBaseTransport) -> None:
        self.status: int | None = None  # of the last answer, as it was on the wire
        self.headers: Mapping[str, str] = {}
        self._shared = shared
        self._streams: list[_TappedStream] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.headers["accept-encoding"] = "identity"
        response = await self._shared.handle_async_request(request)
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        if isinstance(response.stream, httpx.AsyncByteStream):
            tapped = _TappedStream(response.stream)
            self._streams.append(tapped)
            response.stream = tapped
        return response

    async def aclose(self) -> None:
        """The pool belongs to the backend."""

    async def abort(self) -> None:
        """Close what is unfinished; the provider sees its client leave."""
        for stream in self._streams:
            await stream.aclose()

    def check_end(self, prefix: str) -> None:
        """Raises if the provider has a last word and the answer came without it."""
        word = _ENDINGS.get(prefix)
        if word is not None and self._streams and word not in self._streams[-1].tail:
            raise UpstreamBroken("the stream ended before the answer did")


class _TappedStream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream) -> None:
        self.tail = b""
        self._inner = inner
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            self.tail = (self.tail + part)[-_TAIL_BYTES:]
            yield part

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            # An answer that is being read elsewhere ends with an error there.
            with suppress(RuntimeError):
                await self._inner.aclose()
