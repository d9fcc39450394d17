"""Listener that receives the load of other, authenticated hosts.

A host's load counts until its connection ends, a frame is invalid, or `SILENCE_S` pass without a
complete frame. At most `STRANGERS` connections may be unauthenticated; a further one replaces the
oldest of them, so that they cost little.
"""

import asyncio
import logging
import secrets
from dataclasses import dataclass, field

from backends.secret import Secret
from gateway.clock import Clock
from gateway.config.schema_peers import MOST_HOSTS
from gateway.fleet.peers.frames import (
    CHALLENGE_BYTES,
    HELLO_BYTES,
    LENGTH_BYTES,
    LONGEST,
    TAG_BYTES,
    BadFrame,
    FrameReader,
    Handshake,
    hello_frame,
    id_of,
)
from gateway.fleet.peers.peer_load import PeerEngineLoad

SILENCE_S = 0.5
HANDSHAKE_S = 2.0
STRANGERS = 16  # maximum at a time
BREATH_S = 0.01  # minimum between two frames of a host; TCP slows down faster senders
COMPLAIN_S = 10.0  # minimum between log lines on rejected connections

log = logging.getLogger("breakeven.peers")


@dataclass(slots=True)
class PeerConnection:
    """Connection of one authenticated host; `at_s` is when its last frame came."""

    transport: asyncio.WriteTransport
    shares: dict[bytes, PeerEngineLoad] = field(default_factory=dict)
    at_s: float = 0.0


class PeerListener:
    """Server for the connections of other hosts. `hosts` holds the current ones by host id."""

    def __init__(self, own_id: bytes, secret: Secret, clock: Clock) -> None:
        self._own_id, self._secret, self._clock = own_id, secret, clock
        self.hosts: dict[bytes, PeerConnection] = {}
        self._strangers: dict[asyncio.WriteTransport, None] = {}  # oldest first
        self._complained_s: float | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def listen(self, host: str, port: int) -> asyncio.Server:
        """Start to listen. Raises `OSError` if the address cannot be bound."""
        self._server = await asyncio.start_server(self._accept, host, port, limit=LONGEST)
        return self._server

    async def close(self) -> None:
        """Close all connections, including those that were accepted just now."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closed:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._meet(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # Not in the task itself: a task cancelled before its first step runs no code.
        task.add_done_callback(lambda _: writer.transport.abort())

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        transport = writer.transport
        while len(self._strangers) >= STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.abort()
        self._strangers[transport] = None
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                their_id, reading = await self._greet(reader, writer)
            self._strangers.pop(transport, None)
            await self._read_connection(their_id, reading, reader, transport)
        except EOFError:
            pass  # the other end left, as a host does that has dialled itself
        except (BadFrame, OSError, TimeoutError) as error:
            self._complain(writer, error)
        finally:
            self._strangers.pop(transport, None)

    async def _greet(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[bytes, FrameReader]:
        ours = hello_frame(self._own_id, secrets.token_bytes(CHALLENGE_BYTES))
        writer.write(ours)
        theirs = await reader.readexactly(HELLO_BYTES)
        their_id = id_of(theirs)
        handshake = Handshake(self._secret, ours, theirs)
        handshake.check("dials", await reader.readexactly(TAG_BYTES))
        if their_id == self._own_id:
            raise BadFrame("this host itself")
        if their_id not in self.hosts and len(self.hosts) >= MOST_HOSTS:
            raise BadFrame(f"more than {MOST_HOSTS} hosts")
        writer.write(handshake.proof("hears"))
        return their_id, FrameReader(handshake.key())

    async def _read_connection(
        self,
        their_id: bytes,
        reading: FrameReader,
        reader: asyncio.StreamReader,
        transport: asyncio.WriteTransport,
    ) -> None:
        """Read the frames of a host; a new connection of a host replaces its earlier one."""
        before, now = self.hosts.get(their_id), PeerConnection(transport)
        self.hosts[their_id] = now
        if before is not None:
            before.transport.abort()
        log.warning("receiving from host=%s", their_id.hex()[:8])
        try:
            while True:
                async with asyncio.timeout(SILENCE_S):
                    head = await reader.readexactly(LENGTH_BYTES)
                    rest = await reader.readexactly(reading.length(head))
                now.shares, now.at_s = reading.shares(head, rest), self._clock.now_s()
                await asyncio.sleep(BREATH_S)
        finally:
            if self.hosts.get(their_id) is now:
                del self.hosts[their_id]
                log.warning("no longer receiving from host=%s", their_id.hex()[:8])

    def _complain(self, writer: asyncio.StreamWriter, error: Exception) -> None:
        now_s = self._clock.now_s()
        if self._complained_s is None or now_s - self._complained_s >= COMPLAIN_S:
            self._complained_s = now_s
            whom = (writer.get_extra_info("peername") or ["somebody"])[0]
            log.warning(
                "rejected a connection address=%s error=%s",
                whom,
                str(error) or type(error).__name__,
            )
