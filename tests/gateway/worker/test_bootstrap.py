"""The composition root: what it makes of settings and secrets; it closes what it opened."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from backends.litellm import LiteLLMBackend
from backends.openai import OpenAIBackend
from backends.secret import Secret
from gateway.config.settings import ProviderSection, Settings, parse
from gateway.errors import ConfigError
from gateway.worker.bootstrap import HttpClients, _backends, readiness


@pytest.fixture
def make_backend():
    clients = HttpClients(engines=object(), apis=object())

    def make(name, what, url=None, **environ):
        providers = {name: what} if isinstance(what, ProviderSection) else {}
        settings = Settings.model_construct(providers=providers)
        return _backends(clients, settings, environ)(name, what, url)

    return make


def test_each_kind_of_target_gets_its_wire(make_backend) -> None:
    assert isinstance(make_backend("openai", ProviderSection()), OpenAIBackend)
    assert isinstance(
        make_backend("own", ProviderSection(), "http://127.0.0.1:1/v1"), OpenAIBackend
    )
    litellm = make_backend("anthropic", ProviderSection(kind="litellm", api_key_env="K"), K="sk")
    assert isinstance(litellm, LiteLLMBackend)
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


@pytest.mark.parametrize(
    ("draining", "connected", "recorded", "stalled", "missing"),
    [
        (False, True, True, None, []),
        (True, True, True, None, ["draining"]),
        (False, False, True, None, ["ledger writer"]),
        (False, True, False, None, ["journal"]),
        (False, True, True, "journal x: no", ["journal x: no"]),
        (True, False, False, "y", ["draining", "ledger writer", "journal", "y"]),
    ],
)
def test_what_is_missing_for_readiness(draining, connected, recorded, stalled, missing) -> None:
    hot, desk = SimpleNamespace(draining=draining), SimpleNamespace(connected=connected)
    gate = SimpleNamespace(is_open=lambda: recorded, stalled=lambda: stalled)
    assert readiness(hot, desk, gate) == missing


def test_a_stopped_worker_leaves_no_socket_and_no_promise(run_stack) -> None:
    with run_stack() as stack:
        for _ in range(3):
            assert stack.chat("own", stream=True, max_tokens=5).status_code == 200
        home = next(stack.runtime.journal_dir.glob("v2/worker-0-*"))
        board = (stack.runtime.run_dir / "board").read_bytes()
        assert any(board[16 : 16 + 8])  # the worker's pid
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert not [link for link in links if str(home) in str(link.readlink())]
    board = (stack.runtime.run_dir / "board").read_bytes()
    size = stack.runtime.layout.worker_cells * 8
    assert not any(board[16 : 16 + size])
