"""One name whose server is silent keeps no other name waiting: a look-up at a time, for all."""

import asyncio

import pytest

from backends.base import Deadlines
from backends.errors import UpstreamUnreachable
from backends.exchange import read_all
from backends.http import HttpClient, PoolLimits
from backends.origin import Origin

REQUEST = b"POST /v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"


class Names:
    """In place of `resolved`: answers once `open` is set."""

    def __init__(self) -> None:
        self.asked = 0
        self.open = asyncio.Event()
        self.error: OSError | None = None

    async def __call__(self, *_: object) -> list[str]:
        self.asked += 1
        await self.open.wait()
        if self.error is not None:
            raise self.error
        return ["127.0.0.1"]


@pytest.fixture
async def names(monkeypatch):
    made = Names()
    monkeypatch.setattr("backends.http.resolve_addresses", made)
    return made


@pytest.fixture
async def ask(upstream, wire, names):
    upstream.script = lambda _: [wire.respond(b"{}")]
    client, port = HttpClient(PoolLimits(idle_s=0.0)), int(upstream.url.rpartition(":")[2])

    async def asked(connect_s: float = 5.0) -> bytes:
        deadlines = Deadlines(connect_s=connect_s, head_s=5, idle_s=5)
        exchange = await client.open(Origin("http", "x.example", port), REQUEST, deadlines)
        return await read_all(exchange, 1 << 20)

    yield asked
    await client.aclose()


async def test_many_that_wait_are_one_look_up(names, ask) -> None:
    waiting = [asyncio.create_task(ask()) for _ in range(20)]
    await asyncio.sleep(0.05)
    assert names.asked == 1
    names.open.set()
    assert await asyncio.gather(*waiting) == [b"{}"] * 20


async def test_who_gives_up_leaves_it_to_who_comes_next(names, ask) -> None:
    """As long as it hangs it is the only one, however many have given it up."""
    for _ in range(3):
        with pytest.raises(UpstreamUnreachable, match=r"in 0\.05 s"):
            await ask(connect_s=0.05)
    assert names.asked == 1
    names.open.set()
    assert await ask() == b"{}"


async def test_a_failure_is_everybodys_and_the_next_asks_again(names, ask) -> None:
    names.error = OSError("no such name")
    waiting = [asyncio.create_task(ask()) for _ in range(3)]
    await asyncio.sleep(0.05)
    names.open.set()
    told = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(line) for line in told] == [UpstreamUnreachable] * 3
    names.error = None
    assert await ask() == b"{}"
    assert names.asked == 2


async def test_nobody_is_left_to_hear_that_it_failed(names, ask) -> None:
    """And no task says so at its end, which the tests' own rule on warnings would show."""
    names.error = OSError("no such name")
    with pytest.raises(UpstreamUnreachable):
        await ask(connect_s=0.05)
    names.open.set()
    await asyncio.sleep(0.05)
