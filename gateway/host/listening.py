"""Listening sockets of a host, bound by the parent, which waits for a taken port."""

import asyncio
import errno
import socket
from collections.abc import Callable
from contextlib import suppress

from backends.engine import ports
from gateway.config.settings import Settings
from gateway.errors import ConfigError

LISTEN_PATIENCE_S = 8.0
LISTEN_PAUSE_S = 0.2
OPTIONS = {"server": "`make run PORT=9000`", "dashboard": "`make run DASHBOARD_PORT=9001`"}


async def open_server_socket(settings: Settings, say: Callable[[str], None]) -> socket.socket:
    """Return the socket that all workers inherit. Raises `ConfigError` if the port is taken.

    For some seconds the workers of a killed parent still hold it, because they finish streams.
    """
    return await bind_socket("server", (settings.server.host, settings.server.port), say)


async def bind_socket(
    section: str, address: tuple[str, int], say: Callable[[str], None]
) -> socket.socket:
    """Return a listening socket of the section's address; wait a while for a taken port."""
    loop, (host, port) = asyncio.get_running_loop(), address
    deadline = loop.time() + LISTEN_PATIENCE_S
    waiting = False
    while True:
        try:
            return _listen(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                fault = f"{section}.host, {section}.port: cannot listen on {host}:{port}"
                raise ConfigError([f"{fault}: {error.strerror}"]) from error
        who = await asyncio.to_thread(ports.other_listener, port) or "another program"
        taken = f"cannot listen on {host}:{port}: it is taken by {who}"
        if loop.time() > deadline:
            other = f"end it, or set another port ({OPTIONS[section]})"
            raise ConfigError([f"{section}.port: {taken}: {other}"])
        if not waiting:
            say(f"{taken}; waiting {LISTEN_PATIENCE_S:.0f} s for it to end")
        waiting = True
        await asyncio.sleep(LISTEN_PAUSE_S)


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with suppress(OSError):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
