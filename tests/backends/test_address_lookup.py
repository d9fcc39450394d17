"""Every address that a name has is judged, and digits are not looked up."""

import asyncio
import socket

import pytest

from backends.address_lookup import AddressNotAllowed, resolve_addresses
from backends.address_policy import PUBLIC, AddressPolicy


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "10.0.0.7"])
async def test_digits_are_not_looked_up(host) -> None:
    assert await resolve_addresses(host, 1, PUBLIC) == [host]


async def test_localhost_is_this_machine() -> None:
    assert set(await resolve_addresses("localhost", 1, PUBLIC)) <= {"127.0.0.1", "::1"}


async def test_one_bad_address_among_good_ones_is_enough(monkeypatch) -> None:
    """Who may answer with two may answer with another order the next time."""
    said = ["8.8.8.8", "10.0.0.7"]

    async def answered(*_: object, **__: object) -> list:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (line, 1)) for line in said]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", answered)
    with pytest.raises(AddressNotAllowed, match=r"10\.0\.0\.7, a private address; `networks`"):
        await resolve_addresses("api.example.com", 1, PUBLIC)
    assert await resolve_addresses("api.example.com", 1, AddressPolicy(("10.0.0.0/8",))) == said
