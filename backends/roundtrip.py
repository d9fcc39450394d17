"""The round-trip time to a server, measured by the kernels at both ends. Linux only.

A connection is opened and closed: the other kernel answers at once, whatever its programs do. On a
connection in use, acknowledgements wait for the answer, so its round trip would include the
server's processing time.
"""

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

RTT_AT: Final = 68  # of `struct tcp_info`: eight bytes and fifteen words before it
LEAST_BYTES: Final = 72
TIMEOUT_S: Final = 5.0


async def round_trip_s(address: str) -> float | None:
    """Return the round trip of a new connection to a URL's server, `None` if it fails."""
    at = urlsplit(address)
    port = at.port or (443 if at.scheme == "https" else 80)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            _, writer = await asyncio.open_connection(at.hostname, port)
    except (OSError, TimeoutError):
        return None
    try:
        return of_socket(writer.get_extra_info("socket"))
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def of_socket(connection: Any) -> float | None:
    """Return the round-trip time of an object with a TCP socket's options, in seconds."""
    number = getattr(socket, "TCP_INFO", None)
    if connection is None or number is None:
        return None
    try:
        told = connection.getsockopt(socket.IPPROTO_TCP, number, LEAST_BYTES)
    except OSError:  # no TCP connection, or none any more
        return None
    if len(told) < LEAST_BYTES:
        return None
    (microseconds,) = struct.unpack_from("I", told, RTT_AT)
    return microseconds / 1e6 if microseconds else None
