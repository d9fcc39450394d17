"""Each of LiteLLM's names that are not refused is called: with its address, its key and its needs.

Who speaks chat answers, whole and streamed; of the others a request leaves, to the place that
belongs to them. What they answer is in `tests/backends/wire/`.
"""

import json
from collections.abc import AsyncIterator

import httpx
import pytest

from backends.address_policy import AddressPolicy
from backends.base import Call, Deadlines
from backends.errors import BackendError
from backends.exchange import read_all
from backends.http import HttpClient
from backends.litellm import LiteLLMBackend, load
from backends.openai import Credentials, OpenAIBackend
from backends.provider_refusals import KINDS, NEEDS
from backends.provider_table import LISTED, SPEAKS_CHAT
from backends.providers import LITELLM, ProviderSite, wire_of
from backends.secret import Secret

KEY = "sk-0123456789abcdef0123456789abcdef"
NEEDED = {
    "AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1",
    "WATSONX_PROJECT_ID": "p", "WATSONX_TOKEN": "t", "PREDIBASE_TENANT_ID": "t",
    "GIGACHAT_ACCESS_TOKEN": "t", "BFL_API_KEY": KEY,
}  # fmt: skip
MODELS = {
    "bedrock": "amazon.nova-lite-v1:0", "bytez": "google/gemma", "ragflow": "chat/1/m",
    "clarifai": "openai.chat-completion.gpt-oss-120b", "azure_speech": "azure-tts",
    "aws_polly": "neural", "replicate": "meta/m", "huggingface": "meta/m",
    "black_forest_labs": "flux-pro-1.1",
}  # fmt: skip
# Their credentials are made by packages or from private keys that are not here.
ELSEWHERE = {"gdc", "nvidia_riva", "oci", "sap", "vertex_ai", "vertex_ai_beta"}
BODIES = {
    "chat": (
        "/chat/completions",
        {
            "messages": [{"role": "user", "content": "hello"}],
            "max_completion_tokens": 9,
        },
    ),
    "embedding": ("/embeddings", {"input": ["hello"]}),
    "speech": ("/audio/speech", {"input": "hello", "voice": "alloy"}),
    "image_generation": ("/images/generations", {"prompt": "a bear"}),
}
FORM = (
    b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n'
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nx\r\n--b--\r\n'
)
WHOLE = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop",
                 "message": {"role": "assistant", "content": "Hello"}}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
}  # fmt: skip

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Pydantic.*"),
]


def call(kind: str, model: str, *, stream: bool = False) -> Call:
    if kind == "transcription":
        form = "multipart/form-data; boundary=b"
        return Call("/audio/transcriptions", FORM, stream=False, content_type=form)
    path, body = BODIES[kind]
    more = {"stream": True} if stream else {}
    encoded = json.dumps({"model": model, **body, **more}).encode()
    return Call(path, encoded, stream, deadlines=Deadlines(head_s=20))


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


async def test_who_speaks_chat_answers_by_the_own_client(upstream, wire, http) -> None:
    """No name needs LiteLLM, and the answer is the provider's own bytes."""
    body = json.dumps(WHOLE).encode()
    streamed = b"data: " + body + b"\n\ndata: [DONE]\n\n"
    reach = AddressPolicy(("127.0.0.0/8",))

    def answer(_number: int) -> list:
        if b'"stream":true' in upstream.requests[-1].replace(b" ", b""):
            return [wire.STREAM_HEAD, wire.chunked(streamed)]
        return [wire.respond(body)]

    upstream.script = answer
    for name in SPEAKS_CHAT:
        site = ProviderSite(name, upstream.url, Credentials(Secret(KEY)), reach, http)
        client = wire_of(LITELLM, name).client(site)
        assert type(client) is OpenAIBackend, name
        for stream in (False, True):
            exchange = await client.open(call("chat", "some-model", stream=stream))
            told = await read_all(exchange, 10_000)
            assert (exchange.status, told) == (200, streamed if stream else body), name
        head, sent = upstream.requests[-1].split(b"\r\n\r\n", 1)
        assert f"authorization: Bearer {KEY}".encode() in head, name
        assert 9 in json.loads(sent).values(), name  # the cap, by whatever word
    assert len(upstream.requests) == 2 * len(SPEAKS_CHAT)


async def test_a_request_leaves_for_every_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    litellm = load()
    for variable, value in NEEDED.items():
        monkeypatch.setenv(variable, value)
    unsent, left = [], []
    transport = httpx.MockTransport(lambda sent: answer_with_failure(left, sent))
    blocking = type(litellm.module_level_client)  # made at its first use: now, to be put back
    monkeypatch.setattr(litellm, "sync_transport", transport)
    monkeypatch.setattr(litellm, "module_level_client", blocking())
    litellm.in_memory_llm_clients_cache.flush_cache()
    for name in sorted(LISTED.keys() - SPEAKS_CHAT.keys()):
        needs = NEEDS.get(name)
        place = None if needs is None or needs.address is None else "http://provider.example/v1"
        if needs is not None and needs.endings:
            place = f"{place}{needs.endings[0]}"
        backend = LiteLLMBackend(name, Credentials(Secret(KEY)), base_url=place)
        backend.adopt(litellm, transport)
        for kind in KINDS.get(name, ("chat",)):
            left.clear()
            with pytest.raises(BackendError) as failure:
                await read_all(
                    await backend.open(call(kind, MODELS.get(name, "some-model"))), 10_000
                )
            if not left:
                unsent.append(name)
                assert not failure.value.billable, name  # nothing left, so nothing is owed
            elif place is not None:
                assert left[-1].url.host == "provider.example", name
    litellm.in_memory_llm_clients_cache.flush_cache()
    assert set(unsent) == ELSEWHERE


def answer_with_failure(left: list[httpx.Request], request: httpx.Request) -> httpx.Response:
    left.append(request)
    return httpx.Response(500, json={"error": {"message": "down"}})
