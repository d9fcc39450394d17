"""What telemetry asks an engine through carries that engine's key, and trusts whom it is told."""

import ssl

from gateway.host.engine_client import TIMEOUT_S, make_engine_client


def test_a_client_has_the_key_of_its_engine_and_a_limit() -> None:
    client = make_engine_client({"authorization": "Bearer engine"})
    assert client.headers["authorization"] == "Bearer engine"
    assert client.timeout.read == TIMEOUT_S


def test_without_authorities_nobody_is_trusted(monkeypatch) -> None:
    def refuse(*_: object) -> ssl.SSLContext:
        raise AssertionError("the authorities were read")

    monkeypatch.setattr(ssl, "create_default_context", refuse)
    make_engine_client({})
