"""TCP connection to the first address of a name that answers (RFC 8305, "happy eyeballs").

Tried one after the other, an address that does not answer (a dead host, IPv6 without a route) would
use up the whole connect timeout, although the next address works. The next one is therefore tried
in parallel after a short delay.
"""

import asyncio
import socket
from collections.abc import Sequence

from aiohappyeyeballs import AddrInfoType, start_connection

STAGGER_S = 0.25  # RFC 8305, section 5


async def dial(
    loop: asyncio.AbstractEventLoop, addresses: Sequence[str], port: int
) -> tuple[str, socket.socket]:
    """Return the address that answered and its socket. Raises `OSError` if none did.

    Addresses are tried in order; a refusal starts the next one at once. The caller sets the
    timeout.
    """
    made: dict[socket.socket, str] = {}

    def make_socket(info: AddrInfoType) -> socket.socket:
        family, kind, *_, (address, *_) = info
        opened = socket.socket(family, kind)
        made[opened] = address
        return opened

    infos: list[AddrInfoType] = [
        (
            socket.AF_INET6 if ":" in address else socket.AF_INET,
            socket.SOCK_STREAM,
            0,
            "",
            (address, port),
        )
        for address in addresses
    ]
    connected = await start_connection(
        infos, loop=loop, happy_eyeballs_delay=STAGGER_S, interleave=0, socket_factory=make_socket
    )
    return made[connected], connected
