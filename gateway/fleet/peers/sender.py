"""Sender of this host's load to all other hosts; it dials them and waits for none.

Host names are resolved repeatedly, because hosts behind a name come and go on a cluster. Each
address has one connection, reopened after a pause. While a slow host has unread data, no frame is
added for it: the next frame replaces skipped ones, since each holds the whole load.
"""

import asyncio
import logging
import secrets
import socket
from collections.abc import Sequence
from contextlib import suppress

from backends.secret import Secret
from gateway.config.schema_peers import MOST_HOSTS
from gateway.fleet.peers.frames import (
    CHALLENGE_BYTES,
    HELLO_BYTES,
    TAG_BYTES,
    BadFrame,
    FrameWriter,
    Handshake,
    Shares,
    hello_frame,
    id_of,
)

CONNECT_S = 2.0
RESOLVE_S = 5.0
PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0
STUCK_S = 2.0
HEARTBEAT_S = 0.15  # below a third of the listener's `SILENCE_S`

Address = tuple[str, int]
log = logging.getLogger("breakeven.peers")


class PeerSender:
    """Connections to the other hosts: `run` keeps them open, `send` sends the load."""

    def __init__(self, own_id: bytes, secret: Secret, hosts: Sequence[str]) -> None:
        self._own_id, self._secret = own_id, secret
        self._hosts = [split(host) for host in hosts]
        self._known: dict[Address, list[Address]] = {}  # last resolved addresses by name
        self._links: dict[Address, asyncio.Task[None]] = {}
        self._proving = asyncio.Lock()
        self._told: dict[bytes, _Link] = {}  # by host id

    async def run(self) -> None:
        """Keep the connections open until cancelled."""
        try:
            await asyncio.gather(*(self._resolve(host) for host in self._hosts))
        finally:
            links = list(self._links.values())
            self._follow([])
            await asyncio.gather(*links, return_exceptions=True)

    def send(self, shares: Shares, now_s: float, *, changed: bool) -> None:
        """Send the load to all connected hosts: changes at once, otherwise a periodic heartbeat."""
        for link in list(self._told.values()):
            link.send(shares, now_s, changed=changed)

    def _follow(self, addresses: Sequence[Address]) -> None:
        wanted = list(dict.fromkeys(addresses))[: 2 * MOST_HOSTS]
        for gone in [link for link in self._links if link not in wanted]:
            self._links.pop(gone).cancel()
        for new in [link for link in wanted if link not in self._links]:
            self._links[new] = asyncio.create_task(self._keep(new))

    async def _resolve(self, host: Address) -> None:
        """Resolve a host's name; a failed lookup keeps the earlier addresses."""
        loop = asyncio.get_running_loop()
        while True:
            with suppress(OSError, UnicodeError):
                found = await loop.getaddrinfo(*host, type=socket.SOCK_STREAM)
                self._known[host] = [(str(entry[4][0]), int(entry[4][1])) for entry in found]
            self._follow([each for pair in self._hosts for each in self._known.get(pair, [])])
            await asyncio.sleep(RESOLVE_S)

    async def _keep(self, address: Address) -> None:
        pause_s = PAUSE_S
        while True:
            try:
                heard = await self._run_connection(address)
            except (BadFrame, OSError, EOFError, TimeoutError) as error:
                heard = False
                log.info(
                    "cannot send to address=%s:%d error=%s",
                    *address,
                    str(error) or type(error).__name__,
                )
            pause_s = PAUSE_S if heard else min(2 * pause_s, LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s)

    async def _run_connection(self, address: Address) -> bool:
        """Run one connection until it ends; return `False` if its host is known or is this one."""
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(*address, limit=HELLO_BYTES)
        try:
            async with asyncio.timeout(CONNECT_S):
                theirs = await reader.readexactly(HELLO_BYTES)
                their_id = id_of(theirs)
                # One at a time: a second connection to the same host would end the first.
                async with self._proving:
                    if their_id == self._own_id or their_id in self._told:
                        return False
                    ours = hello_frame(self._own_id, secrets.token_bytes(CHALLENGE_BYTES))
                    handshake = Handshake(self._secret, theirs, ours)
                    writer.write(ours + handshake.proof("dials"))
                    handshake.check("hears", await reader.readexactly(TAG_BYTES))
                    link = self._told[their_id] = _Link(
                        writer.transport, FrameWriter(handshake.key())
                    )
            log.warning("sending to host=%s address=%s:%d", their_id.hex()[:8], *address)
            try:
                await reader.read(1)  # the other end sends nothing more: wait until it closes
            finally:
                if self._told.get(their_id) is link:
                    del self._told[their_id]
            return True
        finally:
            writer.transport.abort()


class _Link:
    """Connection whose other end is authenticated."""

    def __init__(self, transport: asyncio.WriteTransport, writing: FrameWriter) -> None:
        self._transport, self._writing = transport, writing
        self._told_s: float | None = None

    def send(self, shares: Shares, now_s: float, *, changed: bool) -> None:
        ago_s = None if self._told_s is None else now_s - self._told_s
        if self._transport.get_write_buffer_size():
            if ago_s is not None and ago_s > STUCK_S:
                self._transport.abort()
        elif changed or ago_s is None or ago_s >= HEARTBEAT_S:
            self._transport.write(self._writing.frame(shares))
            self._told_s = now_s


def split(address: str) -> Address:
    """Split `name:9444` or `[fd00::7]:9444` into host and port."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
