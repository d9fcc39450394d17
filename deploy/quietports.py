"""Free ports for tests that need a port number before a server listens there.

A port that the kernel assigned and got back may be assigned again to any connection. These ports
are therefore below the range from which the kernel assigns ports.
"""

import random
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

GIVEN = Path("/proc/sys/net/ipv4/ip_local_port_range")  # first and last port assigned
LOWEST, LEAST, TRIES = 20_000, 1_000, 200  # LEAST: minimum of ports, even assigned ones


def find_quiet_port(count: int = 1) -> int:
    """Return the first of `count` consecutive ports that are free on loopback.

    Raises `OSError` when none are found.
    """
    first_given = int(GIVEN.read_text(encoding="ascii").split()[0])
    among = range(LOWEST, max(first_given - count, LOWEST + LEAST))
    for port in random.SystemRandom().sample(among, TRIES):
        with suppress(OSError), ExitStack() as held:
            for number in range(port, port + count):
                probe = held.enter_context(socket.socket())
                probe.bind(("127.0.0.1", number))
            return port
    raise OSError(f"no {count} free ports in a row among {among}")
