"""TCP to whichever of a name's addresses answers first, as RFC 8305 has it ("happy eyeballs").

One after the other, an address that answers nothing (a dead host among several, IPv6 without a way
out) would use up all of the time that connecting may take, and no target behind that name would be
reached although the next address is well. So the next one is tried beside it after a moment.
"""

import asyncio
import socket
from collections.abc import Sequence

from aiohappyeyeballs import AddrInfoType, start_connection

STAGGER_S = 0.25  # RFC 8305, section 5


async def dial(
    loop: asyncio.AbstractEventLoop, addresses: Sequence[str], port: int
) -> tuple[str, socket.socket]:
    """Return the address that answered, and the connection to it; `OSError` where none did.

    In their order; a refusal begins the next at once. The caller bounds the time.
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
