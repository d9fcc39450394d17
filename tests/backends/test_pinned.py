"""httpx under the same rule: by name, to a judged address."""

import asyncio
from contextlib import suppress

import httpx
import pytest

from backends.address_lookup import AddressNotAllowed
from backends.address_policy import INSIDE, PUBLIC, AddressPolicy
from backends.pinned import PinnedTransport
from backends.sending import EXTENSION, Transmission

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


@pytest.fixture
async def asked(upstream):
    upstream.script = lambda _: [OK]

    async def ask(host: str, reach: AddressPolicy) -> int:
        url = upstream.url.replace("127.0.0.1", host)
        async with httpx.AsyncClient(transport=PinnedTransport(reach)) as client:
            return (await client.post(url, content=b"{}")).status_code

    return ask


async def test_a_stated_address_is_reached(asked) -> None:
    assert await asked("127.0.0.1", PUBLIC) == 200
    assert await asked("localhost", INSIDE) == 200


async def test_a_name_that_leads_inside_is_not(asked, monkeypatch) -> None:
    """The control, in its last line, is the same name where that is allowed."""
    looked_up = []

    async def leads_home(host, port, reach):
        looked_up.append(host)
        if not reach.inside:
            raise AddressNotAllowed(f"{host} leads to 127.0.0.1")
        return ["127.0.0.1"]

    monkeypatch.setattr("backends.pinned.resolve_addresses", leads_home)
    with pytest.raises(httpx.ConnectError, match=r"leads to 127\.0\.0\.1"):
        await asked("rebound.example", PUBLIC)
    assert await asked("rebound.example", INSIDE) == 200
    assert looked_up == ["rebound.example"] * 2


async def test_the_next_address_is_tried(asked, monkeypatch) -> None:
    async def two(*_: object) -> list[str]:
        return ["127.9.9.9", "127.0.0.1"]  # nobody listens on the first

    monkeypatch.setattr("backends.pinned.resolve_addresses", two)
    assert await asked("two.example", PUBLIC) == 200


async def test_what_left_is_stated_in_the_request(upstream, wire, free_port) -> None:
    """Answered, broken off, on a connection that was kept, and refused; an unwritable head."""
    script = [[OK], [wire.CLOSE]]
    upstream.script = lambda n: script[n - 1]
    begun = []
    async with httpx.AsyncClient(transport=PinnedTransport(PUBLIC)) as client:
        refused = f"http://127.0.0.1:{free_port}"
        for url, head in (
            (upstream.url, {}), (upstream.url, {}), (refused, {}), (upstream.url, {"x": "a\nb"}),
        ):  # fmt: skip
            transmission = Transmission()
            with suppress(httpx.HTTPError):
                await client.post(
                    url, content=b"{}", headers=head, extensions={EXTENSION: transmission}
                )
            begun.append(transmission.begun)
    assert begun == [True, True, False, False]
    assert len(upstream.requests) == 2


async def test_who_waits_for_a_connection_has_sent_nothing(upstream, wire, monkeypatch) -> None:
    monkeypatch.setattr("backends.pinned.CONNECTIONS", 1)
    upstream.script = lambda _: [wire.HANG]
    transmission = Transmission()
    async with httpx.AsyncClient(transport=PinnedTransport(PUBLIC)) as client:
        first = asyncio.create_task(client.post(upstream.url, content=b"{}", timeout=30))
        await upstream.until(lambda: upstream.requests)
        with pytest.raises(httpx.PoolTimeout):
            await client.post(
                upstream.url, content=b"{}", timeout=httpx.Timeout(30, pool=0.05),
                extensions={EXTENSION: transmission},
            )  # fmt: skip
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    assert transmission.begun is False
