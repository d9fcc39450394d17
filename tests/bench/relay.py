"""A relay of bytes before one address: `python relay.py http://127.0.0.1:8100/v1` says its own.

It keeps connections to its target open, as a gateway does, and knows only how a chunked answer
ends: the least work that anything between a client and an engine can do.
"""

import asyncio
import sys
from typing import Any
from urllib.parse import urlsplit

import uvloop

END = b"0\r\n\r\n"


class TargetSide(asyncio.Protocol):
    """A kept connection to the target."""

    client: asyncio.WriteTransport | None = None

    def __init__(self, idle: "list[TargetSide]") -> None:
        self._idle = idle

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        client = self.client
        if client is None:
            return
        client.write(data)
        if data.endswith(END):
            client.close()
            self.client = None
            self._idle.append(self)


class ClientSide(asyncio.Protocol):
    """A client's connection, which ends with its answer."""

    def __init__(self, host: str, port: int, idle: list[TargetSide]) -> None:
        self._host, self._port, self._idle = host, port, idle

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        data = data.replace(b"connection: close\r\n", b"", 1)
        if self._idle:
            self._send(self._idle.pop(), data)
        else:
            self._task = asyncio.ensure_future(self._connect(data))

    async def _connect(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        _, side = await loop.create_connection(
            lambda: TargetSide(self._idle), self._host, self._port
        )
        self._send(side, data)

    def _send(self, side: TargetSide, data: bytes) -> None:
        side.client = self._transport
        side.transport.write(data)


async def main(target: str) -> None:
    parts, idle = urlsplit(target), list[TargetSide]()
    assert parts.hostname is not None
    assert parts.port is not None
    host, port = parts.hostname, parts.port
    server = await asyncio.get_running_loop().create_server(
        lambda: ClientSide(host, port, idle), "127.0.0.1", 0
    )
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{parts.path}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
