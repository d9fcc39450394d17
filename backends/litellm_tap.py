"""A transport for one LiteLLM call, which shares the pool but can abort its own answer.

LiteLLM's closed streams keep their connection open, so a provider would go on generating for a
disconnected client. The tap keeps the answers of its call and their last bytes: a stream without
its provider's final event must not pass as complete. For a whole answer it keeps more, since usage
may be at any place. LiteLLM's handlers resend a request after a broken connection; it may have been
processed and charged, so the tap refuses it. Connections that LiteLLM opens itself are routed to
the tap of the current call, so that its first byte is observed for any client.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial

import httpx

from backends import cohere_events
from backends.errors import UpstreamBroken
from backends.litellm_text import TAIL_BYTES, WHOLE_BYTES, tells_counts
from backends.native_endings import is_over
from backends.reported import error_in_events
from backends.sending import EXTENSION, Transmission

# The final event of a provider's stream; without it, LiteLLM would invent a finish reason.
# The event's name suffices: LiteLLM stops reading after that line, before the rest arrives.
_ENDINGS = {"anthropic": re.compile(rb'"message_stop"|^event:[ ]?message_stop', re.MULTILINE)}
# Providers whose streams mark their end in a usual form at any place; much may follow.
_SAY_OVER = frozenset({
    "azure", "azure_ai", "bedrock_mantle", "databricks", "datarobot", "fireworks_ai", "gemini",
    "cohere", "cohere_chat", "huggingface", "ollama", "ollama_chat", "openrouter", "ragflow",
    "sagemaker_chat", "snowflake", "vertex_ai", "vertex_ai_beta", "watsonx", "watsonx_text",
})  # fmt: skip


_REFUSED = 300  # the lowest status that is not an answer
_WORD_BYTES = 128  # longest end mark or count name, which may arrive in two parts


class Tap(httpx.AsyncBaseTransport):
    """A transport for one call; closing it leaves the shared transport open."""

    def __init__(
        self,
        shared: httpx.AsyncBaseTransport,
        transmission: Transmission | None = None,
        prefix: str = "",
        *,
        whole: bool = False,
    ) -> None:
        """Create the tap; `whole` if the answer comes in one piece."""
        self._whole = whole
        self._mends = prefix in cohere_events.PREFIXES
        self.transmission = transmission or Transmission()
        self.status: int | None = None  # of the last answer, as received
        self.headers: Mapping[str, str] = {}
        self.on_bytes: Callable[[], None] | None = None  # called when bytes of an answer arrive
        self._shared = shared
        self._streams: list[_TappedStream] = []
        self._unanswered: set[tuple[str, str]] = set()  # requests without a complete answer

    def begin(self, request: httpx.Request) -> Callable[[], None]:
        """Record a request. Return a callback for when its answer is complete or has failed.

        Raises `RemoteProtocolError` for a repeated request that has left and was not answered.
        """
        sent = request.method, str(request.url)
        if sent in self._unanswered and self.transmission.possible:
            raise httpx.RemoteProtocolError("it is not sent twice", request=request)
        if request.method != "GET":  # polling may repeat a request
            self._unanswered.add(sent)
            with suppress(httpx.RequestNotRead):  # a form with files is written as it leaves
                self.transmission.compare_body(request.content)
        return partial(self._unanswered.discard, sent)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answered = self.begin(request)
        request.headers["accept-encoding"] = "identity"
        request.extensions = {**request.extensions, EXTENSION: self.transmission}
        response = await self._shared.handle_async_request(request)
        if response.status_code >= _REFUSED:
            answered()
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        if response.has_redirect_location:  # redirects are never followed: the target is unchecked
            del response.headers["location"]
        if isinstance(response.stream, httpx.AsyncByteStream):
            tapped = _TappedStream(response.stream, self._note_bytes, answered, whole=self._whole)
            self._streams.append(tapped)
            response.stream = _MendedStream(tapped) if self._mends else tapped
        return response

    async def fetch(self, request: httpx.Request) -> httpx.Response:
        """Send a request that is not a model call, such as fetching an image of a prompt."""
        return await self._shared.handle_async_request(request)

    def _note_bytes(self) -> None:
        if self.on_bytes is not None:
            self.on_bytes()

    @property
    def tail(self) -> bytes:
        """Return the last bytes of the last answer, or all of a small one."""
        return self._streams[-1].tail if self._streams else b""

    @property
    def is_counted(self) -> bool:
        """Return whether a whole answer counts anything, as far as it was kept."""
        return not self._streams or not self.tail or self._streams[-1].counts

    async def aclose(self) -> None:
        """Do nothing: the pool belongs to the backend."""

    async def abort(self) -> None:
        """Close unfinished answers, which disconnects from the provider."""
        for stream in self._streams:
            await stream.aclose()

    def check_end(self, prefix: str) -> None:
        """Raise `UpstreamBroken` if the stream ended without the provider's final event."""
        word = _ENDINGS.get(prefix)
        if word is not None and self._streams and not word.search(self._streams[-1].tail[-512:]):
            raise UpstreamBroken("the stream ended before the answer did")
        if prefix in _SAY_OVER and self._streams and not self._streams[-1].is_over:
            raise error_in_events(self.tail) or UpstreamBroken("the stream ended without an end")


# LiteLLM reuses clients between calls: a context variable tells the call of a request.
_CURRENT: ContextVar[Tap] = ContextVar("litellm_tap")


def _is_elsewhere(request: httpx.Request) -> bool:
    """Return whether LiteLLM looks up a model's template at a host that is not configured."""
    return request.url.host == "huggingface.co" and "/raw/" in request.url.path


@contextmanager
def calling(tap: Tap) -> Iterator[None]:
    """Route what LiteLLM sends during the block through `tap`."""
    token = _CURRENT.set(tap)
    try:
        yield
    finally:
        _CURRENT.reset(token)


class TapRouter(httpx.AsyncBaseTransport):
    """A transport for clients that LiteLLM creates itself."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        tap = _CURRENT.get(None)
        if tap is None or _is_elsewhere(request):
            raise httpx.ConnectError("outside of any call", request=request)
        if request.method == "GET":
            return await tap.fetch(request)
        return await tap.handle_async_request(request)


class SyncRouter(httpx.BaseTransport):
    """A transport for LiteLLM's blocking clients, of which only sent bytes are observed."""

    def __init__(self) -> None:
        self._inner = httpx.HTTPTransport(trust_env=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if _is_elsewhere(request):
            raise httpx.ConnectError("not the provider's", request=request)
        tap = _CURRENT.get(None)
        if tap is None:
            return self._inner.handle_request(request)
        answered = tap.begin(request)
        request.extensions = {**request.extensions, "trace": tap.transmission.note}
        response = self._inner.handle_request(request)
        if response.status_code >= _REFUSED:
            answered()
        return response

    def close(self) -> None:
        self._inner.close()


class _TappedStream(httpx.AsyncByteStream):
    def __init__(
        self,
        inner: httpx.AsyncByteStream,
        on_bytes: Callable[[], None],
        on_end: Callable[[], None],
        *,
        whole: bool = False,
    ) -> None:
        self.is_over = self.counts = False
        self._whole = whole
        self._tail = b""
        self._kept = bytearray()  # the end of a whole answer
        self._inner = inner
        self._on_bytes, self._on_end = on_bytes, on_end
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            if self._whole:
                self._keep(part)
            else:
                self.is_over = self.is_over or is_over(self._tail[-_WORD_BYTES:] + part)
                self._tail = (self._tail + part)[-TAIL_BYTES:]
            if part:
                self._on_bytes()
            yield part
        self._on_end()

    @property
    def tail(self) -> bytes:
        """Return the kept bytes."""
        return bytes(self._kept) if self._whole else self._tail

    def _keep(self, part: bytes) -> None:
        """Keep a part of a whole answer."""
        self.counts = self.counts or tells_counts(bytes(self._kept[-_WORD_BYTES:]) + part)
        self._kept += part
        del self._kept[:-WHOLE_BYTES]

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            # If another task reads the answer, it ends with an error there.
            with suppress(RuntimeError):
                await self._inner.aclose()


class _MendedStream(httpx.AsyncByteStream):
    """A stream that is adapted for LiteLLM; the kept bytes are the original ones."""

    def __init__(self, inner: _TappedStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in cohere_events.without_names(aiter(self._inner)):
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
