"""Ports of two hosts on one machine: none is chosen twice, and what moved is said."""

import asyncio
import os
import socket

import pytest

from gateway.config.starter import StarterPorts, wanted_ports
from gateway.host import port_claims
from gateway.host.port_claims import PortClaims, free_ports


@pytest.fixture
def row() -> int:
    """The first of several free ports in a row, below those that the system hands out to others."""
    starts = range(10_000 + os.getpid() % 1_000 * 10, 32_000, 10)
    return next(first for first in starts if all(map(is_free, range(first, first + 8))))


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture
def impatient(monkeypatch) -> None:
    monkeypatch.setattr(port_claims, "LISTEN_PATIENCE_S", 0.0)


def both(port: int) -> StarterPorts:
    return StarterPorts(port, port + 1, port + 2, frozenset({"gateway", "dashboard"}))


def test_a_claimed_port_is_nobody_elses_until_it_is_released(row) -> None:
    with PortClaims() as first, PortClaims() as second:
        assert first.claim(row)
        assert not first.claim(row)
        assert not second.claim(row)
        first.release()
        assert second.claim(row)


async def test_a_second_start_takes_the_next_ports_and_says_so(row) -> None:
    """At once: the first one has claimed its ports, so it is no rest of a killed host."""
    with PortClaims() as first, PortClaims() as second:
        said: list[str] = []
        assert await free_ports(both(row), first, said.append) == both(row)
        assert said == []
        moved = await free_ports(both(row), second, said.append)
    assert len({row, row + 1, moved.gateway, moved.dashboard}) == 4
    holder = "is taken by another host of this machine"
    assert said == [
        f"the gateway listens on port {moved.gateway}: {row} {holder}",
        f"the dashboard listens on port {moved.dashboard}: {row + 1} {holder}",
    ]


@pytest.mark.usefixtures("impatient")
async def test_a_port_of_another_program_is_passed_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, PortClaims() as claims:
        port, said = other.getsockname()[1], []
        found = await free_ports(
            StarterPorts(port, 1, movable=frozenset({"gateway"})), claims, said.append
        )
    assert found.gateway != port
    assert said[0].startswith(f"the gateway listens on port {found.gateway}: {port} is taken by ")
    assert f"process {os.getpid()}" in said[0]


async def test_what_a_killed_host_still_holds_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, PortClaims() as claims:
        port, said = other.getsockname()[1], []
        asyncio.get_running_loop().call_later(0.3, other.close)
        found = await free_ports(
            StarterPorts(port, 1, movable=frozenset({"gateway"})), claims, said.append
        )
    assert (found.gateway, said) == (port, [])


@pytest.mark.usefixtures("impatient")
async def test_a_port_that_was_asked_for_does_not_move() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, PortClaims() as claims:
        asked = wanted_ports(other.getsockname()[1], 5)
        assert await free_ports(asked, claims, str) == asked


@pytest.mark.parametrize(("dashboard", "engines"), [(9001, 9002), (9002, 9003), (9003, 9004)])
async def test_engines_leave_the_ports_of_gateway_and_dashboard_alone(dashboard, engines) -> None:
    """A dashboard that moved, or was put, on an engine's port was an error of the configuration."""
    with PortClaims() as claims:
        found = await free_ports(StarterPorts(9000, dashboard, 9002), claims, str)
    assert (found.gateway, found.dashboard, found.engines) == (9000, dashboard, engines)


@pytest.mark.usefixtures("impatient")
async def test_where_no_port_follows_the_kernel_chooses(monkeypatch) -> None:
    monkeypatch.setattr(port_claims, "ATTEMPTS", 0)
    with socket.create_server(("127.0.0.1", 0)) as other, PortClaims() as claims:
        port = other.getsockname()[1]
        found = await free_ports(StarterPorts(port, 1, movable=frozenset({"gateway"})), claims, str)
        assert found.gateway != port
        assert not claims.claim(found.gateway)


def test_a_machine_without_abstract_sockets_goes_by_the_port_alone(monkeypatch) -> None:
    class RefusingSocket(socket.socket):
        def bind(self, address) -> None:
            raise OSError(1, "not permitted")

    monkeypatch.setattr(socket, "socket", RefusingSocket)
    with PortClaims() as claims:
        assert claims.claim(1)
