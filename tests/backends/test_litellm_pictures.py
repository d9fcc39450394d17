"""A picture of several MiB in one event of a provider that LiteLLM translates."""

import json

import pytest

from backends.base import Call, Deadlines
from backends.litellm import LiteLLMBackend
from backends.openai import Credentials
from backends.secret import Secret
from gateway.kinds.relay import ByteRelay

MIB = 1024 * 1024
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
USAGE = {
    "promptTokenCount": 5, "candidatesTokenCount": 1292, "totalTokenCount": 1297,
    "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1290}],
}  # fmt: skip

pytestmark = [
    # LiteLLM's own, on import and in its background worker; nothing of ours.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Pydantic.*"),
]


def drawn(size: int) -> list[bytes]:
    """Gemini's stream: a word, a picture, the end."""
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBO" * (size // 4)}}
    told = [
        {"content": {"parts": [part], "role": "model"}, "index": 0}
        for part in ({"text": "Here"}, picture)
    ]
    last = {"content": {"parts": [{"text": "."}], "role": "model"}, "finishReason": "STOP"}
    values = [{"candidates": [line]} for line in (*told, last)]
    values[-1]["usageMetadata"] = USAGE
    return [f"data: {json.dumps(value)}\r\n\r\n".encode() for value in values]


@pytest.mark.parametrize("size", [1000, 6 * MIB])
async def test_a_picture_is_relayed_and_its_tokens_told(upstream, wire, size) -> None:
    upstream.script = lambda n: [HEAD, wire.chunked(*drawn(size))]
    target = LiteLLMBackend("gemini", Credentials(Secret("k" * 20)), base_url=upstream.url)
    body = {"model": "gemini-x", "messages": [{"role": "user", "content": "draw"}]}
    deadlines = Deadlines(connect_s=5, head_s=30, idle_s=10)
    call = Call("/chat/completions", json.dumps(body).encode(), stream=True, deadlines=deadlines)
    exchange = await target.open(call)
    relay, passed = ByteRelay(False), b""
    async for piece in exchange:
        passed += relay.feed(piece)
    passed += relay.finish()
    await target.aclose()
    assert passed.count(b"iVBO") == size // 4
    assert relay.shown
    assert relay.said_bytes < 100
    assert relay.usage["completion_tokens"] == 1292
