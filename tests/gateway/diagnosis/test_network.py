"""Each way that a connection can fail has its words; no path of an address is told."""

import asyncio
import json
import ssl

import pytest

from gateway.config.settings import parse
from gateway.diagnosis import network
from gateway.diagnosis.network import NetworkPlace, look_at_network, places_of


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch) -> None:
    monkeypatch.setattr(network, "getproxies", dict)


async def test_a_server_that_listens_is_fine_and_its_path_is_not_told() -> None:
    async def hang_up(_reader: object, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        place = NetworkPlace("p", f"http://127.0.0.1:{port}/hooks/s3cret")
        (found,) = await look_at_network([place])
    assert found.verdict.value == "ok"
    assert "s3cret" not in found.words


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (network.socket.gaierror(-2, "no"), "is not known"),
        (TimeoutError(), "no connection within"),
        (ConnectionRefusedError(111, "refused"), "Connection refused"),
        (ssl.SSLCertVerificationError(1, "self-signed certificate"), "api.example:443"),
    ],
)
async def test_each_failure_is_told_with_what_to_do(monkeypatch, raised, words) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(network.asyncio, "open_connection", fail)
    (found,) = await look_at_network([NetworkPlace("p", "https://api.example/v1")])
    assert found.verdict.value == "error"
    assert words in found.words
    assert found.fix


async def test_what_goes_through_a_proxy_is_not_asked(monkeypatch) -> None:
    monkeypatch.setattr(network, "getproxies", lambda: {"https": "http://proxy:3128"})
    monkeypatch.setattr(network, "proxy_bypass", lambda _: False)
    (found,) = await look_at_network([NetworkPlace("p", "https://api.example/v1")])
    assert found.verdict.value == "note"


def test_places_are_those_of_the_configuration() -> None:
    config = {
        "models": {"m": {"targets": ["openai/x", "mine/y", "anthropic/z", "fake/f"]}},
        "pools": {"p": {"engine": {"endpoints": ["http://gpu:8000/v1"]}, "gpu": {"type": "H100"}}},
        "providers": {
            "openai": {}, "anthropic": {"kind": "anthropic"},
            "mine": {"base_url": "https://llm.mine.example/v1"},
            "fake": {"base_url": "http://x/v1", "simulated": True},
        },
        "opentelemetry": {"endpoint": "http://collector:4318"},
        "alerts": {"webhook_env": "HOOK"},
    }  # fmt: skip
    settings = parse(json.dumps(config), name="test")
    found = dict(places_of(settings, {"HOOK": "https://chat.example/T"}))
    assert found == {
        "providers.openai": "https://api.openai.com/v1",
        "providers.anthropic": "https://api.anthropic.com/v1",
        "providers.mine": "https://llm.mine.example/v1",
        "pools.p engine 0": "http://gpu:8000/v1",
        "opentelemetry.endpoint": "http://collector:4318",
        "alerts.webhook_env": "https://chat.example/T",
    }


@pytest.mark.parametrize("host", ["hooks.example:s3cr3t", "[s3cr3t", "x..s3cr3t", "\0s3cr3t"])
async def test_an_address_that_is_none_is_told_without_it(host) -> None:
    place = NetworkPlace("events.webhook_env", f"https://{host}/s3cr3t")
    (finding,) = await look_at_network([place])
    assert finding.verdict == "error"
    assert "s3cr3t" not in repr(finding)
