"""Ownership of loopback ports: which process listens, as the kernel reports it.

An answer on a port does not prove that our process sent it. Another program may have taken the port
while ours was loading. vLLM may bind with SO_REUSEPORT, so that two engines share a port and the
kernel splits the connections between them.
"""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from backends.engine.guard import descendants
from backends.engine.listeners import ListeningSocket, listening_sockets

_LISTEN = "0A"  # include/net/tcp_states.h

_HERE = (socket.inet_aton("127.0.0.1"), socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1"))


def is_free(port: int) -> bool:
    """Return whether a server could bind the port. Connections in TIME_WAIT do not matter."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def is_served_by(port: int, root: int) -> bool:
    """Return whether only process `root` and its descendants listen, and at least one does."""
    found = _listening_inodes(port)
    return bool(found) and not _others(found, root)


def other_listener(port: int, root: int | None = None) -> str | None:
    """Return the name of a listener outside `root` and its descendants, or `None`."""
    others = _listening_inodes(port)
    if root is not None:
        others = _others(others, root) & _listening_inodes(
            port
        )  # a process may have ended in between
    if others:
        return _owner(others)
    return "another program" if root is None and not is_free(port) else None


def _others(inodes: frozenset[int], root: int) -> frozenset[int]:
    """Return the inodes that neither `root` nor its descendants hold.

    Descendants take longer to read, so they are read only if `root` does not hold all inodes.
    """
    left = inodes - _sockets((root,))
    return left and left - _sockets(tuple(descendants(root)))


def _listening_inodes(port: int) -> frozenset[int]:
    """Return the inodes of the sockets that a connection to 127.0.0.1 may reach.

    Sockets bound to that address come before those bound to all addresses.
    """
    try:
        listening = listening_sockets(port)
    except OSError:  # a sandbox, or a kernel without the module
        listening = list(_listed_sockets(port))
    exact = frozenset(each.inode for each in listening if each.address in _HERE)
    return exact or frozenset(each.inode for each in listening if not any(each.address))


def _listed_sockets(port: int) -> Iterator[ListeningSocket]:
    """Read the sockets from /proc, where the kernel lists every connection."""
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            lines = Path("/proc/net", name).read_text(encoding="ascii").splitlines()[1:]
            for fields in (line.split() for line in lines):
                address, _, number = fields[1].partition(":")
                if fields[3] == _LISTEN and int(number, 16) == port:
                    yield ListeningSocket(_bytes_of(address), int(fields[9]))


def _bytes_of(listed: str) -> bytes:
    """Parse an address of /proc/net/tcp: words of 4 bytes in this machine's byte order."""
    words = [int(listed[place : place + 8], 16) for place in range(0, len(listed), 8)]
    return b"".join(word.to_bytes(4, sys.byteorder) for word in words)


def _sockets(pids: tuple[int, ...]) -> frozenset[int]:
    """Return the inodes of all sockets that the processes hold open."""
    found: set[int] = set()
    for pid in pids:
        with suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    target = os.readlink(entry.path)  # noqa: PTH115  (thousands of them)
                    if target.startswith("socket:["):
                        found.add(int(target[8:-1]))
    return frozenset(found)


def _owner(inodes: frozenset[int]) -> str:
    """Return the process that holds one of the sockets, or "another program".

    Processes of other users cannot be inspected.
    """
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):  # noqa: PTH208  (names only)
        if inodes & _sockets((pid,)):
            with suppress(OSError):
                name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
                return f"process {pid} ({name})"
    return "another program"
