"""Runner of several simulated servers in one process: bind, print addresses, serve."""

import asyncio
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn
import uvloop

from backends.event_server import EventServer

GRACE_S = 2


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(1024)
    listener.setblocking(False)
    return listener


def run(served: Sequence[tuple[str, Any, socket.socket]]) -> None:
    """Serve each (label, application, socket); SIGTERM and SIGINT end all of them."""
    lines = [
        f"simulated {label}: http://{listener.getsockname()[0]}:{listener.getsockname()[1]}/v1\n"
        for label, _, listener in served
    ]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(served, "".join(lines)))


async def _serve(served: Sequence[tuple[str, Any, socket.socket]], lines: str) -> None:
    servers = [_Quiet(_config(application)) for _, application, _ in served]

    def stop() -> None:
        for server in servers:
            server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    print(lines, end="", flush=True)  # noqa: T201 - whoever started us reads the ports here
    await asyncio.gather(
        *(
            server.serve(sockets=[listener])
            for server, (_, _, listener) in zip(servers, served, strict=True)
        )
    )


def _config(application: Any) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        lifespan="on",
        access_log=False,
        log_level="critical",
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=75,
    )


class _Quiet(EventServer):
    """A server without signal handlers, of which one process may run several."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
