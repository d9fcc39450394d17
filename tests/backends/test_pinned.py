"""httpx under the same rule: by name, to a judged address."""

import httpx
import pytest

from backends.address_policy import INSIDE, PUBLIC, AddressNotAllowed, AddressPolicy
from backends.pinned import PinnedTransport

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

    monkeypatch.setattr("backends.pinned.resolved", leads_home)
    with pytest.raises(httpx.ConnectError, match=r"leads to 127\.0\.0\.1"):
        await asked("rebound.example", PUBLIC)
    assert await asked("rebound.example", INSIDE) == 200
    assert looked_up == ["rebound.example"] * 2


async def test_the_next_address_is_tried(asked, monkeypatch) -> None:
    async def two(*_: object) -> list[str]:
        return ["127.9.9.9", "127.0.0.1"]  # nobody listens on the first

    monkeypatch.setattr("backends.pinned.resolved", two)
    assert await asked("two.example", PUBLIC) == 200
