"""Claims on ports, so that two hosts on one machine do not choose the same port.

An engine binds its port minutes after the parent chose it, when its environment and its model are
there. Until then the port looks free to a second host. A claim is an abstract Unix socket: the
kernel grants it to one process at a time in the port's network namespace, and releases it when that
process ends.
"""

import asyncio
import errno
import socket
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Self

from backends.engine.ports import is_free, other_listener
from gateway.config.starter import LAST_PORT, StarterPorts
from gateway.host.listening import LISTEN_PATIENCE_S, LISTEN_PAUSE_S

ATTEMPTS = 200  # ports after the wanted one that are tried before the kernel chooses


class PortClaims:
    """Claims of one host, held until `release` or the end of the process."""

    def __init__(self) -> None:
        self._held: dict[int, socket.socket] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def claim(self, port: int) -> bool:
        """Claim a port. Return false if this host or another one has claimed it."""
        if port in self._held:
            return False
        held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            held.bind(f"\0breakeven/port/{port}")
        except OSError as error:
            held.close()
            # on a machine without abstract sockets the port itself has to tell
            return error.errno != errno.EADDRINUSE
        self._held[port] = held
        return True

    def claim_all(self, numbers: Iterable[int]) -> None:
        """Claim the ports that are not claimed."""
        for port in numbers:
            self.claim(port)

    def release(self) -> None:
        """Release every claim."""
        for held in self._held.values():
            held.close()
        self._held.clear()


async def free_ports(
    ports: StarterPorts, claims: PortClaims, say: Callable[[str], None]
) -> StarterPorts:
    """Claim the ports of a first start; movable ones go to the next free port."""
    found = {"gateway": ports.gateway, "dashboard": ports.dashboard}
    # one that was asked for is kept: the listener tells a conflict
    claims.claim_all(found[name] for name in found.keys() - ports.movable)
    for name in sorted(ports.movable, reverse=True):
        found[name] = await _free_port(found[name], claims, name, say)
    engines = ports.engines
    while {engines, engines + 1} & set(found.values()):  # own engines take two ports
        engines += 1
    return replace(ports, gateway=found["gateway"], dashboard=found["dashboard"], engines=engines)


async def _free_port(wanted: int, claims: PortClaims, name: str, say: Callable[[str], None]) -> int:
    """Claim and return `wanted`, or the next free port; a move is reported by `say`.

    A port without a claim may still be held by workers of a killed host that finish streams, so it
    is waited for.
    """
    if claims.claim(wanted):
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + LISTEN_PATIENCE_S
        while not is_free(wanted) and loop.time() < deadline_s:  # noqa: ASYNC110  (the kernel's)
            await asyncio.sleep(LISTEN_PAUSE_S)
        if is_free(wanted):
            return wanted
    holder = await asyncio.to_thread(other_listener, wanted) or "another host of this machine"
    following = range(wanted + 1, min(wanted + ATTEMPTS, LAST_PORT) + 1)
    port = next((port for port in following if is_free(port) and claims.claim(port)), None)
    if port is None:
        port = _any_port(claims)
    say(f"the {name} listens on port {port}: {wanted} is taken by {holder}")
    return port


def _any_port(claims: PortClaims) -> int:
    """Return a port chosen by the kernel."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if claims.claim(port):
            return port
