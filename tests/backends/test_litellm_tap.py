from collections.abc import AsyncIterator
from contextlib import nullcontext

import httpx
import pytest

from backends.errors import UpstreamBroken
from backends.litellm_tap import SyncRouter, Tap, TapRouter, calling
from backends.sending import EXTENSION, Transmission


class Stream(httpx.AsyncByteStream):
    def __init__(self, *parts: bytes) -> None:
        self.parts = parts
        self.closed = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            yield part

    async def aclose(self) -> None:
        self.closed += 1


class SharedTransport(httpx.AsyncBaseTransport):
    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.requests: list[httpx.Request] = []
        self.closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(429, headers={"Retry-After": "3"}, stream=self.stream)

    async def aclose(self) -> None:
        self.closed = True


async def answer(tap: Tap) -> httpx.Response:
    return await tap.handle_async_request(httpx.Request("POST", "http://x/"))


async def test_it_passes_on_and_remembers_what_the_wire_said():
    shared = SharedTransport(Stream(b"a", b"b"))
    tap = Tap(shared)
    response = await answer(tap)
    assert await response.aread() == b"ab"
    assert (tap.status, tap.headers["retry-after"]) == (429, "3")
    assert shared.requests[0].headers["accept-encoding"] == "identity"


async def test_aborting_closes_its_own_answer_once_and_never_the_pool():
    shared = SharedTransport(Stream(b"a"))
    tap = Tap(shared)
    await answer(tap)
    assert shared.stream.closed == 0
    for _ in range(2):
        await tap.abort()
    await tap.aclose()
    assert (shared.stream.closed, shared.closed) == (1, False)


@pytest.mark.parametrize(
    ("prefix", "parts", "whole"),
    [
        ("anthropic", [b"x" * 4000, b'{"type":"message_', b'stop"}\n\n'], True),
        ("anthropic", [b'{"type":"message_stop"}', b"x" * 4000], False),
        ("anthropic", [b"half"], False),
        ("replicate", [b"half"], True),
        ("cohere", [b"half"], False),
        ("gemini", [b'{"text": "\\"finishReason\\": \\"STOP\\""}'], False),
        ("gemini", [b'{"finishReason": "STOP"}'], True),
        # Red before: what a search found follows, and may be longer than what is kept.
        (
            "gemini",
            [b'{"finishReason": "STOP", "groundingMetadata": "', b"x" * 40_000, b'"}'],
            True,
        ),
        ("gemini", [b'{"finishRea', b'son": "ST', b'OP"', b"x" * 40_000], True),
        ("gemini", [b'{"text": "[DONE]"}', b"half"], False),  # red before: it is a model's word
        ("gemini", [b'{"promptFeedback": {"blockReason": "SAFETY"}}'], True),
        ("azure", [b'{"finish_reason": null}'], False),
        ("azure", [b'{"finish_reason": null}\n\ndata: [DONE]\n\n'], True),
        ("ollama_chat", [b'{"done": true}'], True),
        ("watsonx_text", [b'{"stop_reason": "not_finished"}'], False),
        (
            "watsonx_text",
            [b'{"stop_reason": "not_finished"}', b'{"stop_reason": "eos_token"}'],
            True,
        ),
    ],
)
async def test_a_provider_with_a_last_word_must_have_said_it(prefix, parts, whole):
    tap = Tap(SharedTransport(Stream(*parts)))
    await (await answer(tap)).aread()
    if whole:
        tap.check_end(prefix)
    else:
        with pytest.raises(UpstreamBroken):
            tap.check_end(prefix)


async def test_what_litellm_opens_itself_goes_to_the_tap_of_the_call() -> None:
    """A picture that is fetched for a prompt is no call: it says nothing of what was sent."""
    first, second = (Tap(SharedTransport(Stream(b"a")), Transmission()) for _ in range(2))
    router = TapRouter()
    with calling(first):
        await router.handle_async_request(httpx.Request("GET", "http://x/picture"))
        assert first.status is None
        with calling(second):
            await answer(router)
        assert (first.status, second.status) == (None, 429)
    sent = second._shared.requests[0]
    assert sent.extensions[EXTENSION] is second.transmission
    with pytest.raises(httpx.ConnectError):
        await answer(router)


def test_a_client_that_blocks_states_what_leaves(free_port: int) -> None:
    tap = Tap(SharedTransport(Stream()), Transmission())
    client = httpx.Client(transport=SyncRouter())
    for place in (calling(tap), nullcontext()):
        with place, pytest.raises(httpx.ConnectError):
            client.post(f"http://127.0.0.1:{free_port}/")
    assert tap.transmission.begun is False
    client.close()


async def test_nobody_else_is_asked_for_a_models_template() -> None:
    tap = Tap(SharedTransport(Stream()))
    request = httpx.Request("GET", "https://huggingface.co/some/model/raw/main/x.json")
    with calling(tap):
        with pytest.raises(httpx.ConnectError):
            SyncRouter().handle_request(request)
        with pytest.raises(httpx.ConnectError):
            await TapRouter().handle_async_request(request)
    assert tap._shared.requests == []


async def test_the_tail_of_a_small_answer_is_all_of_it() -> None:
    tap = Tap(SharedTransport(Stream(b"x" * 20_000, b"end")))
    assert tap.tail == b""
    await (await answer(tap)).aread()
    assert (len(tap.tail), tap.tail[-4:]) == (16_384, b"xend")


async def test_every_byte_of_an_answer_is_noticed() -> None:
    tap, heard = Tap(SharedTransport(Stream(b": ping", b"", b"end"))), []
    tap.on_bytes = lambda: heard.append(tap.tail)
    await (await answer(tap)).aread()
    assert heard == [b": ping", b": pingend"]


async def test_nobody_is_sent_elsewhere() -> None:
    class MovedTransport(SharedTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(302, headers={"location": "http://y/"}, stream=self.stream)

    tap = Tap(MovedTransport(Stream()))
    async with httpx.AsyncClient(transport=tap, follow_redirects=True) as client:
        assert (await client.post("http://x/")).status_code == 302
