"""How long the way to a server and back takes, by the kernel's own account of a connection.

A request's time holds what the server did; the kernel times its segments' acknowledgements, which
nobody's program delays. Linux only: elsewhere it is not known.
"""

import socket
import struct
from typing import Any, Final

import httpx

RTT_AT: Final = 68  # of `struct tcp_info`: eight bytes and fifteen words before it
LEAST_BYTES: Final = 72


def round_trip_s(answer: httpx.Response) -> float | None:
    """Smoothed over the connection that the answer came by; `None` where nobody measured it."""
    stream = answer.extensions.get("network_stream")
    return None if stream is None else of_socket(stream.get_extra_info("socket"))


def of_socket(connection: Any) -> float | None:
    """Of anything that has a TCP socket's options."""
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
