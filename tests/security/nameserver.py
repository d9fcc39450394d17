"""A name server of one zone, for a network of its own: A and AAAA over UDP, by `urls.answers`."""

import asyncio
import socket
from collections import Counter
from ipaddress import ip_address

import urls

A, AAAA, IN = 1, 28, 1
PORT = 53


class NameServer(asyncio.DatagramProtocol):
    """`asked`: look-ups by name, so that a flipping one is another the second time."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, int]] = Counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        labels, place = [], 12
        while data[place]:
            labels.append(data[place + 1 : place + 1 + data[place]].decode("latin-1"))
            place += 1 + data[place]
        kind, question = int.from_bytes(data[place + 1 : place + 3], "big"), data[12 : place + 5]
        name = ".".join(labels)
        told = [
            packed
            for packed in (
                ip_address(answer).packed for answer in urls.answers(name, self.asked[name, kind])
            )
            if len(packed) == (4 if kind == A else 16)
        ]
        self.asked[name, kind] += 1
        records = [
            b"\xc0\x0c" + kind.to_bytes(2, "big") + IN.to_bytes(2, "big") + bytes(4)
            + len(line).to_bytes(2, "big") + line
            for line in told
        ]  # fmt: skip
        head = data[:2] + b"\x81\x80\x00\x01" + len(records).to_bytes(2, "big") + bytes(4)
        self._transport.sendto(head + question + b"".join(records), addr)


async def serve() -> NameServer:
    loop = asyncio.get_running_loop()
    server = NameServer()
    await loop.create_datagram_endpoint(lambda: server, ("127.0.0.1", PORT), family=socket.AF_INET)
    return server
