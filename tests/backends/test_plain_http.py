"""A client for this machine reads no certificates: it trusts nobody, and no proxy is asked."""

import ssl

import httpx
import pytest

from backends.plain_http import make_plain_client


def context_of(client: httpx.AsyncClient) -> ssl.SSLContext:
    return client._transport._pool._ssl_context


async def test_it_trusts_no_authority_and_still_checks() -> None:
    async with make_plain_client() as client, httpx.AsyncClient() as other:
        assert context_of(client).get_ca_certs() == []
        assert context_of(client).verify_mode is ssl.CERT_REQUIRED
        assert context_of(client).check_hostname
        assert context_of(other).get_ca_certs() != []  # the control


async def test_no_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with make_plain_client() as client, httpx.AsyncClient() as other:
        assert client._mounts == {}
        assert other._mounts  # the control


async def test_options_are_httpx_own() -> None:
    async with make_plain_client(timeout=7.0, headers={"x-a": "b"}) as client:
        assert client.timeout == httpx.Timeout(7.0)
        assert client.headers["x-a"] == "b"
