"""Who serves an entry of a `model_list`: a provider at its address, or a pool."""

import pytest

from gateway.config.deployments import deployment


def of(model: str, mode: str | None = None, **params):
    entry = {"litellm_params": {"model": model, **params}, "model_info": {"mode": mode}}
    return deployment(entry, {"claude-haiku-4-5": "anthropic"}.get)


@pytest.mark.parametrize(
    ("model", "params", "target", "kind"),
    [
        ("openai/gpt-4o", {}, "openai/gpt-4o", "openai"),
        ("openai/gpt-4o", {"api_base": "https://api.openai.com/v1/"}, "openai/gpt-4o", "openai"),
        ("together_ai/a/b", {}, "together/a/b", "openai"),
        ("claude-haiku-4-5", {}, "anthropic/claude-haiku-4-5", "anthropic"),
        ("anthropic/c", {"api_base": "https://api.anthropic.com"}, "anthropic/c", "anthropic"),
        ("anthropic/c", {"api_base": "https://eu.x/v1"}, "anthropic-eu.x/c", "anthropic"),
        ("vertex_ai/claude-haiku-4-5", {}, "vertex_ai/claude-haiku-4-5", "litellm"),
        ("bedrock/x.y-v1:0", {}, "bedrock/x.y-v1:0", "litellm"),
        ("big", {"custom_llm_provider": "azure"}, "azure/big", "litellm"),
        ("groq/big", {"custom_llm_provider": "groq"}, "groq/big", "openai"),
        ("openai/m", {"api_base": "https://llm.example.com/v1"}, "llm.example.com/m", "openai"),
        ("azure/d", {"api_base": "https://eu.example.com"}, "azure-eu.example.com/d", "litellm"),
    ],
)
def test_an_api_is_a_provider(model, params, target, kind) -> None:
    found = of(model, **params)
    assert (found.target, found.kind, found.own) == (target, kind, False)


def test_an_address_in_a_variable_is_read_and_never_guessed() -> None:
    entry = {"litellm_params": {"model": "azure/d", "api_base": "os.environ/WHERE"}}
    found = deployment(entry, lambda _: None, {"WHERE": "https://eu.example.com"})
    assert found is not None
    assert (found.target, found.base_url) == ("azure-eu.example.com/d", "https://eu.example.com")
    assert deployment(entry, lambda _: None, {}) is None


@pytest.mark.parametrize(
    ("model", "address"),
    [
        ("hosted_vllm/meta/llama", "https://gpu.example.com/v1"),
        ("openai/meta/llama", "http://10.1.2.3:8000/v1"),
        ("openai/meta/llama", "http://localhost:8000/v1"),
        ("openai/meta/llama", "http://vllm:8000/v1"),
        ("openai/meta/llama", "http://vllm.models.svc:8000/v1"),
    ],
)
def test_what_stands_in_the_own_network_is_a_pool(model, address) -> None:
    found = of(model, api_base=address, api_key="none")
    assert (found.target, found.model, found.base_url) == ("pool:llama", "meta/llama", address)
    assert found.key is None


def test_a_name_of_its_own_keeps_the_price() -> None:
    found = of("azure/d", api_base="https://eu.example.com")
    assert (found.price_name, found.litellm_prefix) == ("azure/d", "azure")
    assert of("openai/gpt-4o").price_name is None


@pytest.mark.parametrize(
    ("given", "variable", "in_file"),
    [
        ("os.environ/MY_KEY", "MY_KEY", False),
        ("sk-secret", "OPENAI_API_KEY", True),
        (None, "OPENAI_API_KEY", False),  # as LiteLLM does
        ("none", None, False),
    ],
)
def test_a_key_is_a_variable(given, variable, in_file) -> None:
    found = of("openai/gpt-4o", api_key=given)
    assert (found.key, found.key_in_file) == (variable, in_file)
    assert "sk-secret" not in repr(found)


def test_rankings_go_where_their_path_stands() -> None:
    found = of("cohere/rerank-v3.5", "rerank")
    assert (found.kind, found.base_url) == ("openai", "https://api.cohere.com/v2")
    assert found.price_name == "cohere/rerank-v3.5"
    assert of("openai/whisper-1", "audio_transcription").serves == "transcription"


@pytest.mark.parametrize(
    ("model", "mode", "kind", "serves"),
    [
        ("openai/gpt-image-1", "image_generation", "openai", "image_generation"),
        ("openai/tts-1", "audio_speech", "openai", "speech"),
        ("openai/omni-moderation-latest", "moderation", "openai", "moderation"),
        ("gemini/imagen-4", "image_generation", "litellm", "image_generation"),
    ],
)
def test_pictures_and_speech_go_to_who_serves_them(model, mode, kind, serves) -> None:
    found = of(model, mode)
    assert (found.kind, found.serves, found.own) == (kind, serves, False)


def test_no_own_engine_makes_pictures() -> None:
    found = of("hosted_vllm/flux", "image_generation", api_base="http://10.0.0.5:8000/v1")
    assert (found.own, found.serves) == (False, "image_generation")


@pytest.mark.parametrize(
    ("model", "mode"),
    [("", None), ("*", None), ("nobody-knows", None), ("x/", None), ("bedrock/r", "rerank"),
     ("gemini/t", "audio_transcription"), ("os.environ/MODEL", None)],
)  # fmt: skip
def test_who_serves_is_not_guessed(model, mode) -> None:
    assert of(model, mode) is None
