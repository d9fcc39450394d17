"""Pictures, speech and moderations through LiteLLM: OpenAI's form, and nothing of LiteLLM's own."""

import json

import pytest

from backends.answers import read_pictures
from backends.base import Call
from backends.exchange import read_all
from backends.litellm import LiteLLMBackend
from backends.openai import Credentials
from backends.secret import Secret

KEY = "sk-0123456789abcdef"
SOUND = b"HTTP/1.1 200 OK\r\ncontent-type: audio/wav\r\ncontent-length: 7\r\n\r\n\x00\x01sound"
pytestmark = [  # LiteLLM's own
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Pydantic.*"),
]


@pytest.mark.parametrize("counts", [True, False])
async def test_pictures_go_the_same_way(upstream, wire, counts: bool):
    told = {"created": 1, "data": [{"b64_json": "aGk="}]}
    usage = {"input_tokens": 5, "output_tokens": 272, "total_tokens": 277,
             "input_tokens_details": {"text_tokens": 5, "image_tokens": 0}}  # fmt: skip
    if counts:
        told |= {"usage": usage, "size": "1024x1024", "quality": "low"}
    upstream.script = lambda n: [wire.respond(json.dumps(told).encode())]
    target = LiteLLMBackend("openai", Credentials(Secret(KEY)), base_url=upstream.url)
    body = {"model": "gpt-image-1", "prompt": "a cat", "quality": "low", "n": 1, "style": "vivid"}
    exchange = await target.open(Call("/images/generations", json.dumps(body).encode(), False))
    found = read_pictures(await read_all(exchange, 10**6))
    assert found.usage is not None
    assert found.usage["generated_images"] == 1
    assert found.usage.get("output_tokens") == (272 if counts else None)
    assert found.usage.get("quality") == ("low" if counts else None)
    sent = json.loads(upstream.requests[0].partition(b"\r\n\r\n")[2])
    assert (sent["prompt"], sent["quality"]) == ("a cat", "low")
    await target.aclose()


async def test_speech_is_its_bytes(upstream, wire):
    upstream.script = lambda n: [SOUND]
    target = LiteLLMBackend("openai", Credentials(Secret(KEY)), base_url=upstream.url)
    body = {"model": "tts-1", "input": "hello", "voice": "alloy", "response_format": "wav"}
    exchange = await target.open(Call("/audio/speech", json.dumps(body).encode(), False))
    assert exchange.headers["content-type"] == "audio/wav"
    assert await read_all(exchange, 10**6) == b"\x00\x01sound"
    sent = json.loads(upstream.requests[0].partition(b"\r\n\r\n")[2])
    assert (sent["input"], sent["voice"], sent["response_format"]) == ("hello", "alloy", "wav")
    await target.aclose()


async def test_moderations_go_the_same_way(upstream, wire):
    result = {"flagged": True, "categories": {"hate": True}, "category_scores": {"hate": 0.9}}
    told = {"id": "modr-1", "model": "omni-moderation-latest", "results": [result]}
    upstream.script = lambda n: [wire.respond(json.dumps(told).encode())]
    target = LiteLLMBackend("openai", Credentials(Secret(KEY)), base_url=upstream.url)
    body = {"model": "omni-moderation-latest", "input": "x"}
    exchange = await target.open(Call("/moderations", json.dumps(body).encode(), False))
    answer = json.loads(await read_all(exchange, 10**6))
    assert answer["results"][0]["flagged"]
    await target.aclose()
