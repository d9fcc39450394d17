"""Client of targets without an OpenAI-compatible API (Bedrock, Gemini), through LiteLLM.

`load()` or the first call imports LiteLLM, which takes seconds and much memory and blocks other
requests meanwhile. LiteLLM only translates: its retries, callbacks, redirects and price lookups are
disabled, and the gateway makes every attempt. Requests use the gateway's transport, because only
the owner of the sockets can stop the upstream when a client disconnects.
"""

import asyncio
import importlib
import logging
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import httpx

from backends.address_policy import PUBLIC, AddressPolicy
from backends.base import Call, Deadlines
from backends.charged_errors import charge_status
from backends.cost_headers import cost_headers
from backends.errors import (
    BackendError,
    HeadTimeout,
    IdleTimeout,
    InvalidResponse,
    RequestDeclined,
    RequestUnsendable,
    ServerError,
    UpstreamBroken,
    UpstreamUnreachable,
    broken_by,
)
from backends.litellm_arguments import AdapterArguments
from backends.litellm_tap import SyncRouter, Tap, TapRouter, calling
from backends.litellm_text import (
    DONE,
    PICTURE_PATHS,
    SPOKEN_PATHS,
    StreamWriter,
    redact,
    refusal_body,
    sound_answer,
    translate_error,
    whole_answer,
)
from backends.litellm_usage import begun_usage, billed_usage, provider_usage, running_usage
from backends.openai import Credentials
from backends.pinned import PinnedTransport
from backends.ratelimit import rate_limit_headers
from backends.reported import error_in, error_in_events
from backends.unreadable_answers import with_usage_of

# Sent bytes cannot be observed for these: they bypass LiteLLM's own HTTP clients.
_UNWATCHED = frozenset({"aiohttp_openai", "vllm"})
# Pydantic builds each model at first use, which once failed in a call on a busy machine.
_ANSWERS = ("ModelResponse", "ModelResponseStream", "TextCompletionResponse", "EmbeddingResponse")
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
log = logging.getLogger("breakeven.litellm")
_JSON = {"content-type": "application/json"}
_EVENTS = {"content-type": "text/event-stream; charset=utf-8"}


def load() -> Any:
    """Import LiteLLM without network access, and disable all that is not translation."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True
    litellm.disable_streaming_logging = True
    litellm.turn_off_message_logging = True
    litellm.num_retries = 0
    litellm.disable_stop_sequence_limit = True  # it would drop all beyond four without a word
    for name in _LOGGERS:  # even their errors quote prompts and answers; failures are raised too
        logging.getLogger(name).disabled = True
    handler: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")
    # Connections that LiteLLM and its SDKs open also use the gateway's transport.
    handler.AsyncHTTPHandler.create_async_transport = staticmethod(_routed)
    litellm.aclient_session = httpx.AsyncClient(transport=TapRouter(), trust_env=False)
    litellm.sync_transport = SyncRouter()
    litellm.in_memory_llm_clients_cache.flush_cache()  # importing LiteLLM creates some clients
    types: Any = importlib.import_module("litellm.types.utils")
    for name in _ANSWERS:
        getattr(types, name)()
    return litellm


def _routed(*_: Any, **__: Any) -> TapRouter:
    return TapRouter()


class LiteLLMExchange:
    """An answer translated by LiteLLM, as the bytes that OpenAI would have sent."""

    __slots__ = ("_abort", "_chunks", "_closed", "headers", "status")

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        chunks: AsyncGenerator[bytes, None],
        abort: Callable[[], Any],
    ) -> None:
        self.status = status
        self.headers = headers
        self._chunks = chunks
        self._abort = abort
        self._closed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        """Close the answer; before its end, this closes the upstream's socket. Idempotent."""
        if not self._closed:
            self._closed = True
            await self._abort()
            with suppress(RuntimeError):  # a cancelled task may still be running it
                await self._chunks.aclose()


class LiteLLMBackend:
    """Client of one provider with one key. `prefix` is LiteLLM's name of the provider."""

    def __init__(
        self,
        prefix: str,
        credentials: Credentials | None = None,
        *,
        base_url: str | None = None,
        reach: AddressPolicy = PUBLIC,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._prefix = prefix
        self._credentials = credentials or Credentials()
        self.secrets = self._credentials.secrets
        self._reach = reach
        self._wall_clock = wall_clock
        self._litellm: Any = None
        self._arguments = AdapterArguments(prefix, self._credentials, base_url)
        self._loading = asyncio.Lock()
        self._transport: httpx.AsyncHTTPTransport | None = None

    async def start(self) -> httpx.AsyncBaseTransport:
        """Load LiteLLM ahead of the first call."""
        async with self._loading:
            if self._transport is None:
                self._litellm = await asyncio.to_thread(load)
                self._transport = PinnedTransport(self._reach)
            return self._transport

    def adopt(self, litellm: Any, transport: Any) -> None:
        """Use a loaded LiteLLM and another transport, for example one without a network."""
        self._litellm, self._transport = litellm, transport

    async def open(self, call: Call) -> LiteLLMExchange:
        """Translate and send the call. Return its answer, or raise the error of its failure."""
        call.transmission.takes()
        shared = self._transport or await self.start()
        tap = Tap(shared, call.transmission, self._prefix, whole=not call.stream)
        function, arguments = self._arguments.make(self._litellm, call)
        if self._prefix in _UNWATCHED:
            call.transmission.begun = None
        first = None
        try:
            with calling(tap):
                async with asyncio.timeout(call.deadlines.head_s):
                    result = await function(**arguments)
                    if call.stream and tap.status is None:  # some providers send only when read
                        first = await anext(aiter(result), None)
        except TimeoutError:
            await tap.abort()
            if not call.transmission.possible:
                raise UpstreamUnreachable("no connection in time") from None
            raise HeadTimeout("no answer in time") from None
        except asyncio.CancelledError:
            await tap.abort()
            raise
        except Exception as error:  # noqa: BLE001 - foreign errors are translated at this border
            await tap.abort()
            return self._refusal_exchange(error, tap)
        limits = rate_limit_headers(tap.headers) | cost_headers(tap.headers)
        if call.stream:
            chunks = self._events(result, first, tap, call.deadlines)
            return LiteLLMExchange(200, {**_EVENTS, **limits}, chunks, tap.abort)
        if call.path in SPOKEN_PATHS:
            media, body = sound_answer(result)
        else:
            media, body = "application/json", _whole_body(result, tap, call.path, arguments)
        return LiteLLMExchange(200, {"content-type": media, **limits}, _once(body), tap.abort)

    async def aclose(self) -> None:
        """Close the connections."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    def _refusal_exchange(self, error: Exception, tap: Tap) -> LiteLLMExchange:
        translated = translate_error(
            error,
            tap.status,
            tap.headers,
            wall_s=self._wall_clock(),
            watched=self._prefix not in _UNWATCHED,
        )
        if tap.status is not None and tap.status < 300:  # the text without LiteLLM's additions
            translated = error_in_events(tap.tail) or translated
            if isinstance(translated, InvalidResponse):  # an unreadable answer may report usage
                with_usage_of(translated, tap.tail)
        if isinstance(translated, ServerError | InvalidResponse) and translated.status is None:
            log.warning(
                "LiteLLM failed provider=%s error=%s", self._prefix, translated
            )  # contains no text from LiteLLM
            if not tap.transmission.possible:
                translated = RequestUnsendable(str(translated))
        if isinstance(translated, BackendError):
            tap.transmission.judge(translated)
            if tap.status is not None and tap.status >= 300:
                charge_status(translated, tap.tail)
            raise translated from None  # the original text may contain keys
        body = refusal_body(translated, redact(str(error), self.secrets), tap.tail)
        if not tap.transmission.possible:  # LiteLLM cannot express it: nothing was sent
            declined = RequestDeclined("the adapter has no form for it", status=translated)
            declined.body = body
            raise tap.transmission.judge(declined) from None
        return LiteLLMExchange(translated, _JSON, _once(body), tap.abort)

    async def _events(
        self, stream: Any, first: Any, tap: Tap, deadlines: Deadlines
    ) -> AsyncGenerator[bytes, None]:
        writer = StreamWriter()
        parts = aiter(stream)
        try:
            while True:
                chunk, first = first, None
                if chunk is None:
                    # Any byte resets the timeout: a provider may send keep-alives for minutes.
                    async with asyncio.timeout(deadlines.idle_s) as patience:
                        tap.on_bytes = partial(_be_patient, patience, deadlines.idle_s)
                        chunk = await anext(parts, None)
                if chunk is None:
                    break
                running = running_usage(stream, tap.tail)
                if running is None and not writer.said:
                    running = begun_usage(tap.tail)
                event = writer.event(chunk, tap.tail, running)
                if event:
                    yield event
            tap.check_end(self._prefix)
        except TimeoutError:
            raise IdleTimeout("the answer went silent") from None
        except BackendError:
            raise
        except Exception as error:  # noqa: BLE001 - foreign errors are translated at this border
            raise _broken_stream(error, tap.tail, said=writer.said) from None
        finally:
            tap.on_bytes = None
            await tap.abort()
            await stream.aclose()
        told = provider_usage(writer.usage, stream, tap.tail)
        yield writer.usage_event(billed_usage(told, tap.tail)) + DONE


def _whole_body(result: Any, tap: Tap, path: str, arguments: Mapping[str, Any]) -> bytes:
    """Return a whole answer. Raises `UpstreamBroken` if the provider ended it with an error."""
    if error_in(tap.tail) is not None:  # LiteLLM may make an answer without words of one
        return tap.tail
    try:
        return whole_answer(
            result,
            tail=tap.tail,
            is_counted=tap.is_counted,
            zeros_count=path not in PICTURE_PATHS,
            encoding=arguments.get("encoding_format"),
        )
    except UpstreamBroken as error:
        tap.transmission.judge(error)
        raise


def _broken_stream(error: Exception, tail: bytes, *, said: bool) -> BackendError:
    """Return the error of a broken stream: as its provider reported it, else by class name."""
    reported = error_in_events(tail)
    if reported is None:
        return UpstreamBroken(f"the stream broke ({type(error).__name__})")
    return broken_by(reported) if said else reported


def _be_patient(patience: asyncio.Timeout, idle_s: float | None) -> None:
    if idle_s is not None:
        patience.reschedule(asyncio.get_running_loop().time() + idle_s)


async def _once(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body
