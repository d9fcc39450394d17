"""Readiness is a real answer: what counts as one."""

import httpx
import pytest

from backends.engine.warmup import WarmUpFailed, answers_health, warm_up

BASE = "http://engine/v1"


def client(handler) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.MockTransport(handler))


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False), (500, False)])
async def test_health_is_asked_outside_of_v1(status, healthy):
    asked = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(status)

    async with client(handler) as http:
        assert await answers_health(http, BASE) is healthy
    assert asked == ["/health"]


async def test_no_connection_is_no_health():
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    async with client(handler) as http:
        assert await answers_health(http, BASE) is False
        with pytest.raises(WarmUpFailed, match="ConnectError refused"):
            await warm_up(http, BASE, "m", "generate")


@pytest.mark.parametrize(
    ("kind", "path", "answer"),
    [
        ("generate", "/v1/completions", {"choices": [{"text": "x"}]}),
        ("embedding", "/v1/embeddings", {"data": [{"embedding": [0.1]}]}),
        ("rerank", "/v1/rerank", {"results": [{"index": 0}]}),
        ("transcription", "/v1/audio/transcriptions", {"text": ""}),
    ],
)
async def test_the_first_request_is_of_the_models_kind(kind, path, answer):
    asked = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(200, json=answer)

    async with client(handler) as http:
        await warm_up(http, BASE, "m", kind)
    assert asked == [path]


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, json={"choices": []}),
        httpx.Response(500, json={"error": {"message": "EngineCore"}}),
        httpx.Response(200, text="<html>"),
    ],
)
async def test_an_answer_without_content_is_a_failure(response):
    async with client(lambda _: response) as http:
        with pytest.raises(WarmUpFailed, match="/completions"):
            await warm_up(http, BASE, "m", "generate")
