"""Resolution of host names within one time limit."""

import socket
import threading
import time
from collections.abc import Iterable

from backends.address_policy import LOCALHOST, parse_address

WITHIN_S = 2.0


def resolve_hosts(hosts: Iterable[str], within_s: float = WITHIN_S) -> dict[str, tuple[str, ...]]:
    """Return the addresses of names that resolve in time; numeric ones need no lookup.

    The threads are daemons, so that a hanging resolver does not block the end of a command.
    """
    wanted = {host for host in hosts if host != LOCALHOST and parse_address(host) is None}
    found: dict[str, tuple[str, ...]] = {}
    threads = [
        threading.Thread(target=_resolve_host, args=(host, found), daemon=True) for host in wanted
    ]
    for thread in threads:
        thread.start()
    until_s = time.monotonic() + within_s
    for thread in threads:
        thread.join(max(0.0, until_s - time.monotonic()))
    return dict(found)


def _resolve_host(host: str, found: dict[str, tuple[str, ...]]) -> None:
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except Exception:  # noqa: BLE001  (a resolver's plug-in may raise anything: nothing is known)
        return
    found[host] = tuple(dict.fromkeys(str(answer[4][0]) for answer in answers))
