"""An HTTP server that wakes only when there is work.

Uvicorn's server checks ten times a second whether it should stop, which is most of the load of an
idle process, and adds a tenth of a second to a shutdown. This server is notified instead.
"""

import asyncio
import logging
import socket
from contextlib import suppress

import uvicorn

DATE_S = 1.0  # how long a date in answers' heads may be old
FIRST_LOOK_S, LATER_LOOK_S = 0.005, 0.1  # interval of checks for open connections
log = logging.getLogger("uvicorn.error")  # where the server that this one is says the same


class EventServer(uvicorn.Server):
    """Uvicorn's server, which stops at once when `should_exit` is set from a thread or signal.

    It also checks when its application's lifespan has ended (`on_tick`).
    """

    def __init__(self, config: uvicorn.Config) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        super().__init__(config)

    @property
    def should_exit(self) -> bool:
        """Return whether the server is stopping or should stop."""
        return self._should_exit

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        self._should_exit = value
        loop = self._loop
        if value and loop is not None:
            with suppress(RuntimeError):  # the loop is closed: it has ended
                loop.call_soon_threadsafe(self._news.set)

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        lifespan = asyncio.create_task(self._await_lifespan())
        try:
            while not await self.on_tick(0):
                self._news.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(DATE_S):
                        await self._news.wait()
        finally:
            lifespan.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let open requests finish within the configured time, then stop.

        Uvicorn's version sleeps a tenth of a second before it checks for open requests.
        """
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                await self._wait_tasks_to_complete()
        except TimeoutError:
            tasks = self.server_state.tasks
            log.warning("cancelling requests that outlast the shutdown requests=%s", len(tasks))
            for task in tasks:
                task.cancel(msg="the server ends")
        if not self.force_exit:
            await self.lifespan.shutdown()

    async def _wait_tasks_to_complete(self) -> None:
        state, pause_s = self.server_state, FIRST_LOOK_S
        await asyncio.sleep(0)  # idle connections are gone after that
        while (state.connections or state.tasks) and not self.force_exit:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LATER_LOOK_S)
        for listener in self.servers:
            await listener.wait_closed()

    async def _await_lifespan(self) -> None:
        """Wait for Uvicorn's event at the end of the application's lifespan."""
        ended: asyncio.Event | None = getattr(self.lifespan, "shutdown_event", None)
        if ended is not None:
            await ended.wait()
            self._news.set()
