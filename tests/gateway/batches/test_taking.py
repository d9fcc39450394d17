"""The providers that take batches, with their keys in nothing that is shown."""

from types import SimpleNamespace

import pytest

from backends.secret import Secret
from gateway.batches.taking import taking_batches
from gateway.config.settings import parse
from gateway.errors import ConfigError

CONFIG = """
models: {api: {targets: [openai/gpt-4o-mini]}}
providers:
  openai: {api_key_env: KEY, batch: true}
  groq: {api_key_env: OTHER}
"""


async def test_only_those_that_say_so_and_with_their_key() -> None:
    settings = parse(CONFIG, name="test")
    runtime = SimpleNamespace(providers={"openai": None, "groq": None})
    found = taking_batches(settings, runtime, {"KEY": "sk-1234567890"})
    assert list(found) == ["openai"]
    assert found["openai"].secrets == (Secret("sk-1234567890"),)
    assert "sk-" not in repr(found)
    await found["openai"].remote.aclose()
    with pytest.raises(ConfigError):
        taking_batches(settings, runtime, {})
