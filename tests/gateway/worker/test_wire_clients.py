"""Each seat and each provider gets the client of its kind, with the proof that is its own."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from backends.anthropic import AnthropicBackend
from backends.http import HttpClient
from backends.openai import OpenAIBackend
from gateway.config.settings import parse
from gateway.errors import ConfigError
from gateway.worker.wire_clients import HttpClients, make_backends

PROVIDERS = {
    "openai": {"api_key_env": "A"},
    "claude": {"kind": "anthropic", "base_url": "https://api.anthropic.com", "api_key_env": "B"},
}


def settings(tmp_path: Path, **changes: Any) -> Any:
    found = {
        "state_dir": str(tmp_path),
        "models": {"m": {"targets": ["openai/x"], "compare_with": ["openai/x"]}},
        "providers": PROVIDERS,
    }
    return parse(yaml.safe_dump({**found, **changes}), name="test")


async def test_providers_have_the_client_of_their_kind(tmp_path: Path) -> None:
    made, clients = settings(tmp_path), HttpClients(HttpClient(), HttpClient())
    make = make_backends(clients, made, {"A": "key-a", "B": "key-b"})
    found = {name: make(name, provider, None) for name, provider in made.providers.items()
             if name == "openai"}  # fmt: skip
    found["claude"] = make("claude", made.providers["claude"], "https://api.anthropic.com")
    assert [type(client) for client in found.values()] == [OpenAIBackend, AnthropicBackend]
    secrets = [[secret.reveal() for secret in client.secrets] for client in found.values()]
    assert secrets == [["key-a"], ["key-b"]]
    with pytest.raises(ConfigError, match=r"providers.other.base_url"):
        make("other", made.providers["claude"], None)
