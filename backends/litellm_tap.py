"""The transport under one LiteLLM call: shares the pool, but can end its own answer at once.

LiteLLM's streams do not close their connection when they are closed, so a client that leaves
would leave a provider generating. The tap keeps hold of the answers of its call and of their last
bytes: a stream whose provider never said that it was over must not pass for a whole one. Of an
answer in one piece it keeps more, since its usage may stand anywhere in it. LiteLLM's handlers send
a request again whose connection broke; it may have been answered and charged, so none leaves twice.

What LiteLLM opens itself goes through a router to the tap of the call that is being made, so that
a call's first byte is seen whatever client its handler takes.
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

# What a provider's stream carries last; LiteLLM would make up a finish reason without it.
# The event's name counts: LiteLLM reads no further once it has that line, and the rest may lag.
_ENDINGS = {"anthropic": re.compile(rb'"message_stop"|^event:[ ]?message_stop', re.MULTILINE)}
# Whose streams say in one of the usual forms that they are over, wherever: much may follow.
_SAY_OVER = frozenset({
    "azure", "azure_ai", "bedrock_mantle", "databricks", "datarobot", "fireworks_ai", "gemini",
    "cohere", "cohere_chat", "huggingface", "ollama", "ollama_chat", "openrouter", "ragflow",
    "sagemaker_chat", "snowflake", "vertex_ai", "vertex_ai_beta", "watsonx", "watsonx_text",
})  # fmt: skip


_REFUSED = 300  # the lowest status that is not an answer
_WORD_BYTES = 128  # longest end mark or count name, which may arrive in two parts


class Tap(httpx.AsyncBaseTransport):
    """A transport for one call; closing it leaves the shared one open."""

    def __init__(
        self,
        shared: httpx.AsyncBaseTransport,
        transmission: Transmission | None = None,
        prefix: str = "",
        *,
        whole: bool = False,
    ) -> None:
        """`whole`: its answer comes in one piece."""
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
        """Take note of a request; return what to call once its answer is whole, or it cannot be.

        Raises `RemoteProtocolError` for one that has left and was not answered: it is the same one.
        """
        sent = request.method, str(request.url)
        if sent in self._unanswered and self.transmission.possible:
            raise httpx.RemoteProtocolError("it is not sent twice", request=request)
        if request.method != "GET":  # that asks for what is made, as often as it likes
            self._unanswered.add(sent)
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
        """Send what is no call of a model: a picture that a prompt names is fetched."""
        return await self._shared.handle_async_request(request)

    def _note_bytes(self) -> None:
        if self.on_bytes is not None:
            self.on_bytes()

    @property
    def tail(self) -> bytes:
        """Return the last bytes of the last answer; all of one that is small."""
        return self._streams[-1].tail if self._streams else b""

    @property
    def is_counted(self) -> bool:
        """Whether an answer in one piece counts anything, however long it is, as far as is seen."""
        return not self._streams or not self.tail or self._streams[-1].counts

    async def aclose(self) -> None:
        """The pool belongs to the backend."""

    async def abort(self) -> None:
        """Close what is unfinished; the provider sees its client leave."""
        for stream in self._streams:
            await stream.aclose()

    def check_end(self, prefix: str) -> None:
        """Raises if the provider has a last word and the answer came without it."""
        word = _ENDINGS.get(prefix)
        if word is not None and self._streams and not word.search(self._streams[-1].tail[-512:]):
            raise UpstreamBroken("the stream ended before the answer did")
        if prefix in _SAY_OVER and self._streams and not self._streams[-1].is_over:
            raise error_in_events(self.tail) or UpstreamBroken("the stream ended without an end")


# LiteLLM keeps clients from call to call: which call a request is of is known by its context.
_CURRENT: ContextVar[Tap] = ContextVar("litellm_tap")


def _is_elsewhere(request: httpx.Request) -> bool:
    """LiteLLM looks for templates of models by their names, at nobody who is configured."""
    return request.url.host == "huggingface.co" and "/raw/" in request.url.path


@contextmanager
def calling(tap: Tap) -> Iterator[None]:
    """Around a call of LiteLLM: what it sends meanwhile goes through `tap`."""
    token = _CURRENT.set(tap)
    try:
        yield
    finally:
        _CURRENT.reset(token)


class TapRouter(httpx.AsyncBaseTransport):
    """Under the clients that LiteLLM makes itself."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        tap = _CURRENT.get(None)
        if tap is None or _is_elsewhere(request):
            raise httpx.ConnectError("outside of any call", request=request)
        if request.method == "GET":
            return await tap.fetch(request)
        return await tap.handle_async_request(request)


class SyncRouter(httpx.BaseTransport):
    """Under its clients that block: nothing of theirs is watched but what leaves."""

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
        """Return what is kept of the bytes that came."""
        return bytes(self._kept) if self._whole else self._tail

    def _keep(self, part: bytes) -> None:
        """Take a part of an answer in one piece."""
        self.counts = self.counts or tells_counts(bytes(self._kept[-_WORD_BYTES:]) + part)
        self._kept += part
        del self._kept[:-WHOLE_BYTES]

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            # An answer that is being read elsewhere ends with an error there.
            with suppress(RuntimeError):
                await self._inner.aclose()


class _MendedStream(httpx.AsyncByteStream):
    """A stream that LiteLLM could not read as it comes; what is kept of it is as it came."""

    def __init__(self, inner: _TappedStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in cohere_events.without_names(aiter(self._inner)):
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
