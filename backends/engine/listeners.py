"""Sockets that listen on a port, queried from the kernel by port (netlink, sock_diag).

`/proc/net/tcp` lists every connection of the machine, which takes 10 ms if there are many. With
netlink the kernel walks listening sockets only. Formats: linux/netlink.h, linux/sock_diag.h,
linux/inet_diag.h.
"""

import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

_SOCK_DIAG, _BY_FAMILY = 4, 20  # of linux/sock_diag.h
_REQUEST_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ERROR, _DONE = 2, 3  # NLMSG_ERROR, NLMSG_DONE
_LISTENING = 1 << 10  # TCP_LISTEN, as one bit of a mask
_HEAD = struct.Struct("=IHHII")  # nlmsghdr
_ASKED = struct.Struct("=BBBxI")  # inet_diag_req_v2, before its 48 bytes of inet_diag_sockid
_TOLD = struct.Struct("=4xH2x16s28x16xI")  # of inet_diag_msg: source port (swapped), address, inode
_PORT = struct.Struct("!H44x2x")  # inet_diag_sockid with a source port and nothing else
_READ_BYTES = 64 * 1024
_PATIENCE_S = 1.0


class ListeningSocket(NamedTuple):
    """A listening TCP socket. `address` has 4 bytes for IPv4 or 16 for IPv6."""

    address: bytes
    inode: int


def listening_sockets(port: int) -> list[ListeningSocket]:
    """Return the sockets that listen on the port. Raises `OSError` when the query fails."""
    with socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG
    ) as asked:
        asked.settimeout(_PATIENCE_S)
        return [
            listener
            for family, size in ((socket.AF_INET, 4), (socket.AF_INET6, 16))
            for listener in _ask(asked, family, size, port)
        ]


def _ask(asked: socket.socket, family: int, size: int, port: int) -> Iterator[ListeningSocket]:
    body = _ASKED.pack(family, socket.IPPROTO_TCP, 0, _LISTENING) + _PORT.pack(port)
    asked.send(_HEAD.pack(_HEAD.size + len(body), _BY_FAMILY, _REQUEST_DUMP, 0, 0) + body)
    while True:
        answer, place = asked.recv(_READ_BYTES), 0
        while place < len(answer):
            length, kind, *_ = _HEAD.unpack_from(answer, place)
            if kind == _DONE:
                return
            if kind == _ERROR or length < _HEAD.size:
                raise OSError("the kernel does not report which process listens")
            number, address, inode = _TOLD.unpack_from(answer, place + _HEAD.size)
            if socket.ntohs(number) == port:
                yield ListeningSocket(address[:size], inode)
            place += (length + 3) & ~3
