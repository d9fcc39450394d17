"""One address of several is dead: whoever asks for the name is connected all the same."""

import asyncio
import socket
from types import SimpleNamespace

import pytest

from backends import dialing
from backends.base import Deadlines
from backends.dialing import dial
from backends.errors import UpstreamUnreachable
from backends.exchange import read_all
from backends.http import HttpClient
from backends.origin import Origin

DEADLINES = Deadlines(connect_s=1.0, head_s=5, idle_s=5)
REQUEST = b"POST /v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
DEAD, REFUSING, WELL = "127.0.0.2", "127.0.0.3", "127.0.0.1"


@pytest.fixture
async def dead(upstream):
    """Beside the upstream, on its port, a listener whose backlog is full: nothing is answered."""
    port = int(upstream.url.rpartition(":")[2])
    listener = socket.socket()
    listener.bind((DEAD, port))
    listener.listen(0)
    fillers = []
    for _ in range(8):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex((DEAD, port))
        fillers.append(filler)
    yield port
    for each_filler in (*fillers, listener):
        each_filler.close()


@pytest.fixture
async def named(upstream, wire, dead, monkeypatch):
    """`await named(addresses)`: one request to a name that has them."""
    upstream.script = lambda _: [wire.respond(b"{}")]
    client = HttpClient()

    async def ask(*addresses: str) -> bytes:
        async def found(*_: object) -> list[str]:
            return list(addresses)

        monkeypatch.setattr("backends.http.resolve_addresses", found)
        exchange = await client.open(Origin("http", "x.example", dead), REQUEST, DEADLINES)
        return await read_all(exchange, 1 << 20)

    yield ask
    await client.aclose()


@pytest.mark.parametrize(
    "addresses", [(DEAD, WELL), (WELL, DEAD), (REFUSING, WELL), (DEAD, REFUSING, DEAD, WELL)]
)
async def test_a_dead_address_costs_a_moment(named, addresses) -> None:
    assert await named(*addresses) == b"{}"


async def test_where_none_is_well_its_time_is_the_limit(named) -> None:
    """And the control of the fixture: the dead one does not answer."""
    with pytest.raises(UpstreamUnreachable, match=r"in 1\.0 s"):
        await named(DEAD, DEAD)
    with pytest.raises(UpstreamUnreachable, match="ConnectionRefusedError"):
        await named(REFUSING, REFUSING)


async def test_in_their_order_while_they_answer(dead) -> None:
    loop = asyncio.get_running_loop()
    address, made = await dial(loop, [WELL, DEAD], dead)
    made.close()
    assert address == WELL


@pytest.fixture
def made(monkeypatch):
    """Every socket that dialling makes."""
    found: list[socket.socket] = []

    class KeptSocket(socket.socket):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)
            found.append(self)

    # In place of the module: whoever accepts makes sockets, too.
    monkeypatch.setattr(
        dialing,
        "socket",
        SimpleNamespace(
            socket=KeptSocket, AF_INET=socket.AF_INET, AF_INET6=socket.AF_INET6,
            SOCK_STREAM=socket.SOCK_STREAM,
        ),
    )  # fmt: skip
    return found


async def test_what_comes_too_late_is_closed(dead, made, monkeypatch) -> None:
    """Several answer at once; of whoever is not taken no socket is left."""
    monkeypatch.setattr(dialing, "STAGGER_S", 1e-9)  # 0 is none: one after the other
    _, won = await dial(asyncio.get_running_loop(), [DEAD, DEAD, WELL, WELL, WELL], dead)
    await asyncio.sleep(0.05)
    assert [made_value for made_value in made if made_value.fileno() >= 0] == [won]
    won.close()


async def test_who_gives_up_meanwhile_leaves_none(dead, made) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.4):
            await dial(asyncio.get_running_loop(), [DEAD, DEAD], dead)
    await asyncio.sleep(0.05)
    assert len(made) == 2
    assert all(made_value.fileno() < 0 for made_value in made)
