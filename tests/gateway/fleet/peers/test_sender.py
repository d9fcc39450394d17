"""Every host that listens is told, over real sockets; one that does not take it costs nothing."""

import asyncio
import contextlib
import time

import pytest

from backends.secret import Secret
from gateway.clock import Clock
from gateway.fleet.peers import sender as telling_module
from gateway.fleet.peers.frames import FrameWriter
from gateway.fleet.peers.listener import PeerListener
from gateway.fleet.peers.peer_load import PeerEngineLoad
from gateway.fleet.peers.sender import HEARTBEAT_S, STUCK_S, PeerSender, _Link, split

SECRET, WRONG = Secret("s" * 32), Secret("w" * 32)
OWN, THEIRS = b"o" * 16, b"t" * 16
SHARES = {b"e" * 16: PeerEngineLoad(2, 300)}
PATIENCE_S = 10.0


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    monkeypatch.setattr(telling_module, "RESOLVE_S", 0.1)
    monkeypatch.setattr(telling_module, "LONGEST_PAUSE_S", 0.2)


@contextlib.asynccontextmanager
async def exchange(*, hears=THEIRS, secret=SECRET, hosts="127.0.0.1:{port}"):
    """(hearing, telling) of two hosts; the one is told as by a running host."""
    hearing = PeerListener(hears, SECRET, Clock())
    server = await hearing.listen("0.0.0.0", 0)  # several addresses of one host
    port = server.sockets[0].getsockname()[1]
    telling = PeerSender(OWN, secret, [each.format(port=port) for each in hosts.split()])

    async def tell() -> None:
        while True:
            telling.send(SHARES, time.monotonic(), changed=False)
            await asyncio.sleep(0.02)

    tasks = [asyncio.create_task(telling.run()), asyncio.create_task(tell())]
    try:
        yield hearing, telling
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, hearing.close(), return_exceptions=True)


async def until(check) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not check():
        assert time.monotonic() < deadline, "never came true"
        await asyncio.sleep(0.01)


async def test_a_host_is_told_and_told_again_after_a_cut() -> None:
    async with exchange() as (hearing, _):
        await until(lambda: OWN in hearing.hosts and hearing.hosts[OWN].shares == SHARES)
        first = hearing.hosts[OWN]
        first.transport.abort()
        await until(lambda: hearing.hosts.get(OWN, first) is not first)


async def test_heartbeats_keep_it_heard() -> None:
    async with exchange() as (hearing, _):
        await until(lambda: OWN in hearing.hosts)
        first = hearing.hosts[OWN]
        began_s = first.at_s
        await until(lambda: first.at_s > began_s + 5 * HEARTBEAT_S)
        assert hearing.hosts[OWN] is first


@pytest.mark.parametrize("case", [{"hears": OWN}, {"secret": WRONG}])
async def test_neither_itself_nor_who_has_another_secret_is_told(case) -> None:
    async with exchange(**case) as (hearing, telling):
        await asyncio.sleep(1.0)
        assert (hearing.hosts, telling._told) == ({}, {})


async def test_a_host_of_several_addresses_is_told_once() -> None:
    async with exchange(hosts="127.0.0.1:{port} 127.0.0.2:{port}") as (hearing, telling):
        await until(lambda: OWN in hearing.hosts)
        first = hearing.hosts[OWN]
        await asyncio.sleep(1.0)
        assert hearing.hosts == {OWN: first}
        assert len(telling._told) == 1


async def test_a_name_that_means_others_now_is_followed() -> None:
    async with exchange() as (hearing, telling):
        await until(lambda: OWN in hearing.hosts)
        telling._known.clear()
        telling._hosts.clear()
        telling._follow([])
        await until(lambda: not hearing.hosts)
        assert telling._links == {}


class Pipe:
    """A transport whose other end takes nothing, or all."""

    def __init__(self) -> None:
        self.waiting, self.sent, self.aborted = 0, 0, False

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def write(self, _: bytes) -> None:
        self.sent += 1

    def abort(self) -> None:
        self.aborted = True


def test_only_what_changed_is_told_and_now_and_then_the_rest() -> None:
    pipe = Pipe()
    link = _Link(pipe, FrameWriter(b"k"))
    for at_s, changed in ((0.0, False), (0.05, False), (0.1, True), (0.15, False), (0.26, False)):
        link.send(SHARES, at_s, changed=changed)
    assert pipe.sent == 3  # the first, the change, and a heartbeat after it


def test_what_is_not_taken_is_not_piled_up() -> None:
    pipe = Pipe()
    link = _Link(pipe, FrameWriter(b"k"))
    link.send(SHARES, 0.0, changed=True)
    pipe.waiting = 10
    for tick in range(1, 40):
        link.send(SHARES, tick * 0.05, changed=True)
    assert (pipe.sent, pipe.aborted) == (1, False)
    link.send(SHARES, STUCK_S + 0.1, changed=True)
    assert (pipe.sent, pipe.aborted) == (1, True)


def test_addresses_are_split() -> None:
    assert split("gateway-1.gateway:9444") == ("gateway-1.gateway", 9444)
    assert split("[fd00::7]:1") == ("fd00::7", 1)
