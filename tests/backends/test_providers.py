"""One table of provider kinds: each client is made from its entry, none is imported early."""

import importlib.util
import subprocess
import sys
from pathlib import Path

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
    kind_for,
)
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


def test_the_address_table_agrees_with_litellm() -> None:
    """LiteLLM keeps the same facts in its package; only its text is read."""
    root = Path(importlib.util.find_spec("litellm").origin).parent
    files = [root / "litellm_core_utils" / "get_llm_provider_logic.py", root / "constants.py"]
    files += (root / "llms").rglob("*.py")
    files += (root / "llms").rglob("*.json")
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    for name, url in BASE_URLS.items():
        assert Origin.parse(url)[0].scheme == "https"
        assert url in text, name
