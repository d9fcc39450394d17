"""TCP to whichever of a name's addresses answers first, as RFC 8305 has it ("happy eyeballs").

One after the other, an address that answers nothing (a dead host among several, IPv6 without a way
out) would use up all of the time that connecting may take, and no target behind that name would be
reached although the next address is well. So the next one is tried beside it after a moment.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Sequence

STAGGER_S = 0.25  # RFC 8305, section 5


async def dial(
    loop: asyncio.AbstractEventLoop, addresses: Sequence[str], port: int
) -> tuple[str, socket.socket]:
    """The address that answered, and the connection to it; `OSError` of the last that failed.

    In their order; a refusal begins the next at once. The caller bounds the time.
    """
    left, trying = deque(addresses), set[asyncio.Task[tuple[str, socket.socket]]]()
    refused = OSError("no address to connect to")
    try:
        while left or trying:
            if left:
                trying.add(loop.create_task(_connected(loop, left.popleft(), port)))
            done, _ = await asyncio.wait(
                trying, timeout=STAGGER_S if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                trying.discard(task)
                try:
                    return task.result()
                except OSError as error:
                    refused = error
        raise refused
    finally:
        for task in trying:
            task.add_done_callback(_close)
            task.cancel()


async def _connected(
    loop: asyncio.AbstractEventLoop, address: str, port: int
) -> tuple[str, socket.socket]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setblocking(False)
    try:
        await loop.sock_connect(made, (address, port))
    except BaseException:
        made.close()
        raise
    return address, made


def _close(task: asyncio.Task[tuple[str, socket.socket]]) -> None:
    """Who came second is not needed."""
    if not task.cancelled() and task.exception() is None:
        task.result()[1].close()
