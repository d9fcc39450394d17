"""A simulated provider for tests: an ASGI application on a free port, in its own thread."""

import asyncio
import socket
import threading
from abc import ABC, abstractmethod
from typing import Any, Self

import uvicorn

from backends.event_server import EventServer


class UpstreamServer(ABC):
    """A server for the ASGI application of a subclass; it runs within the `with` block."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        config = uvicorn.Config(
            self,
            access_log=False,
            log_level="critical",
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        self._server = EventServer(config)
        self._thread = threading.Thread(target=self._serve, name="upstream", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()

    @abstractmethod
    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer one ASGI request."""

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))
