"""One table of provider kinds: each client is made from its entry, none is imported early."""

import subprocess
import sys

import pytest

from backends.address_policy import PUBLIC
from backends.anthropic import AnthropicBackend
from backends.http import HttpClient
from backends.litellm import LiteLLMBackend
from backends.openai import Credentials, OpenAIBackend
from backends.origin import Origin
from backends.providers import (
    ADAPTER_KIND,
    ANTHROPIC,
    BASE_URLS,
    DEFAULT_KIND,
    LITELLM,
    OPENAI,
    PROVIDER_KINDS,
    ProviderSite,
    key_variables,
    kind_for,
    quirks_of,
    wire_of,
)
from backends.quirks import NO_QUIRKS
from backends.secret import Secret


async def test_each_kind_makes_its_client() -> None:
    key = Secret("sk-1")
    http = HttpClient()
    site = ProviderSite("anthropic", "https://x.example/v1", Credentials(key), PUBLIC, http)
    made = {kind: entry.client(site) for kind, entry in PROVIDER_KINDS.items()}
    assert {kind: type(client) for kind, client in made.items()} == {
        OPENAI: OpenAIBackend,
        ANTHROPIC: AnthropicBackend,
        LITELLM: LiteLLMBackend,
    }
    for client in made.values():
        assert tuple(client.secrets) == (key,)
        await client.aclose()
    await http.aclose()


@pytest.mark.parametrize(
    ("name", "kind"), [("groq", OPENAI), ("openai", OPENAI), ("anthropic", LITELLM), ("?", LITELLM)]
)
def test_a_provider_has_the_kind_that_knows_its_address(name: str, kind: str) -> None:
    assert kind_for(name) == kind


def test_the_two_kinds_that_others_fall_back_to() -> None:
    assert PROVIDER_KINDS[ADAPTER_KIND].finds_address
    assert PROVIDER_KINDS[DEFAULT_KIND].addresses == BASE_URLS
    assert PROVIDER_KINDS[DEFAULT_KIND].serves is None


def test_what_a_kind_serves_and_marks() -> None:
    adapter, plain = PROVIDER_KINDS[LITELLM], PROVIDER_KINDS[OPENAI]
    assert adapter.can_serve("chat")
    assert not adapter.can_serve("rerank")
    assert plain.can_serve("rerank")
    assert adapter.marks_cache("anthropic")
    assert not adapter.marks_cache("gemini")
    assert not plain.marks_cache("anthropic")
    messages = PROVIDER_KINDS[ANTHROPIC]
    assert [kind for kind, entry in PROVIDER_KINDS.items() if entry.speaks_messages] == [ANTHROPIC]
    assert messages.marks_cache("?")
    assert not messages.can_serve("embedding")


def test_a_usual_variable_is_named_once() -> None:
    read = [kind.variables for kind in PROVIDER_KINDS.values()]
    usual = [variable for variables in read for variable in variables.usual.values()]
    assert len(set(usual)) == len(usual)


def test_the_table_imports_no_adapter() -> None:
    words = "import sys, backends.providers; print({'litellm', 'httpx'} & sys.modules.keys())"
    told = subprocess.run(
        [sys.executable, "-c", words], check=True, capture_output=True, text=True
    ).stdout
    assert told.strip() == "set()"


def test_addresses_are_public_and_each_has_its_key() -> None:
    for name, url in BASE_URLS.items():
        assert Origin.parse(url)[0].scheme == "https", name
        assert key_variables(name), name


@pytest.mark.parametrize(
    ("name", "stated", "path"),
    [
        ("perplexity", None, "/chat/completions"),
        ("perplexity", "https://x.example", "/chat/completions"),
        ("minimax", None, "/v1/chat/completions"),
        ("minimax", "https://x.example", "/v1/chat/completions"),
        ("minimax", "https://x.example/v1", "/v1/chat/completions"),
    ],
)
async def test_a_name_that_speaks_chat_needs_no_adapter(name, stated, path) -> None:
    wire = wire_of(LITELLM, name)
    http = HttpClient()
    key, home = Credentials(Secret("sk-1")), stated or wire.addresses[name]
    client = wire.client(ProviderSite(name, home, key, PUBLIC, http))
    assert type(client) is OpenAIBackend
    head = client._head("/chat/completions")
    assert head.startswith(f"POST {path} HTTP/1.1".encode())
    assert wire.load is None
    await http.aclose()


@pytest.mark.parametrize("stated", ["{}", "{}/", "{}//"])
async def test_a_known_address_has_its_providers_quirks_however_it_is_written(stated: str) -> None:
    """Red before: with a slash at the end members were sent that Mistral refuses."""
    http = HttpClient()
    address = stated.format(BASE_URLS["mistral"])
    site = ProviderSite("eu", address, Credentials(Secret("sk-1")), PUBLIC, http)
    client = PROVIDER_KINDS[OPENAI].client(site)
    assert type(client) is OpenAIBackend
    assert client._quirks == quirks_of("mistral") != NO_QUIRKS
    await http.aclose()


def test_a_dialect_of_its_own_needs_the_adapter() -> None:
    for name in ("anthropic", "bedrock", "gemini", "azure"):
        assert wire_of(LITELLM, name) is PROVIDER_KINDS[LITELLM]
    assert wire_of(OPENAI, "perplexity") is PROVIDER_KINDS[OPENAI]


def test_openai_itself_wants_nothing_otherwise() -> None:
    assert quirks_of("openai") is NO_QUIRKS
    assert quirks_of("mistral").renames == {
        "max_completion_tokens": "max_tokens", "seed": "random_seed",
    }  # fmt: skip
    assert quirks_of("nvidia").renames == quirks_of("nvidia_nim").renames != {}
    assert "stream_options" not in quirks_of("deepinfra").leaves_out
