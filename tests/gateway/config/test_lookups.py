"""Names are looked up together and within a limit; what fails is left out."""

import socket
import time

import pytest

from gateway.config.lookups import resolve_hosts


def test_names_lead_to_addresses_and_the_others_are_left_out(monkeypatch) -> None:
    def resolver(host: str, *_: object, **__: object) -> list[tuple]:
        if host == "gone.example":
            raise socket.gaierror
        return [(2, 1, 6, "", ("10.0.0.7", 0)), (2, 1, 6, "", ("10.0.0.7", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    hosts = ["a.example", "gone.example", "localhost", "10.0.0.1", "::1"]
    assert resolve_hosts(hosts) == {"a.example": ("10.0.0.7",)}


def test_a_resolver_that_is_silent_holds_nobody(monkeypatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(5) or [])
    began_s = time.monotonic()
    assert resolve_hosts(["a.example", "b.example"], within_s=0.05) == {}
    assert time.monotonic() - began_s < 3


@pytest.mark.parametrize("hosts", [[], ["127.0.0.1"]])
def test_nothing_is_asked_where_nothing_is_named(hosts) -> None:
    assert resolve_hosts(hosts) == {}
