"""Each seat and each provider gets the client of its kind, with the proof that is its own."""

import pytest

from backends.anthropic import AnthropicBackend
from backends.litellm import LiteLLMBackend
from backends.openai import OpenAIBackend
from backends.secret import Secret
from gateway.config.settings import ProviderSection, Settings, parse
from gateway.errors import ConfigError
from gateway.worker.wire_clients import HttpClients, make_backends


@pytest.fixture
def make_backend():
    clients = HttpClients(engines=object(), apis=object())

    def make(name, what, url=None, **environ):
        providers = {name: what} if isinstance(what, ProviderSection) else {}
        settings = Settings.model_construct(providers=providers)
        return make_backends(clients, settings, environ)(name, what, url)

    return make


def test_each_kind_of_target_gets_its_wire(make_backend) -> None:
    assert isinstance(make_backend("openai", ProviderSection()), OpenAIBackend)
    assert isinstance(
        make_backend("own", ProviderSection(), "http://127.0.0.1:1/v1"), OpenAIBackend
    )
    litellm = make_backend("anthropic", ProviderSection(kind="litellm", api_key_env="K"), K="sk")
    assert isinstance(litellm, LiteLLMBackend)
    claude = make_backend("anthropic", ProviderSection(kind="anthropic", api_key_env="K"), K="sk")
    assert isinstance(claude, AnthropicBackend)
    assert [secret.reveal() for secret in claude.secrets] == ["sk"]
    with pytest.raises(ConfigError, match=r"providers\.nobody\.base_url: needed"):
        make_backend("nobody", ProviderSection())


def test_an_engines_key_is_optional(make_backend) -> None:
    text = """
    pools:
      a:
        engine: {endpoints: ["http://127.0.0.1:1/v1"], api_key_env: ENGINE_KEY}
        gpu: {type: H200}
    """
    pool = parse(text, name="t").pools["a"]
    with_key = make_backend("pool:a/0", pool, "http://127.0.0.1:1/v1", ENGINE_KEY="sk-engine")
    assert with_key._credentials.api_key == Secret("sk-engine")
    assert make_backend("pool:a/0", pool, "http://127.0.0.1:1/v1")._credentials.api_key is None
