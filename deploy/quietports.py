"""Ports for tests that name one before something listens there.

A port that the system gave and took back may be the next that it gives to anybody's connection, so
these are below those that it gives by itself.
"""

import random
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

GIVEN = Path("/proc/sys/net/ipv4/ip_local_port_range")  # from the first to the last
LOWEST, LEAST, TRIES = 20_000, 1_000, 200  # LEAST: so many, though the system gives them, too


def find_quiet_port(count: int = 1) -> int:
    """Return the first of `count` ports in a row that are free on loopback."""
    first_given = int(GIVEN.read_text(encoding="ascii").split()[0])
    among = range(LOWEST, max(first_given - count, LOWEST + LEAST))
    for port in random.SystemRandom().sample(among, TRIES):
        with suppress(OSError), ExitStack() as held:
            for number in range(port, port + count):
                probe = held.enter_context(socket.socket())
                probe.bind(("127.0.0.1", number))
            return port
    raise OSError(f"no {count} free ports in a row among {among}")
