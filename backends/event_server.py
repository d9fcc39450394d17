"""An HTTP server that wakes when there is something to do.

Uvicorn's server looks ten times a second whether it should end, which is most of what an idle
process does, and gives connections a tenth of a second to end. This one is told, and looks.
"""

import asyncio
import logging
import socket
from contextlib import suppress

import uvicorn

DATE_S = 1.0  # how long a date in answers' heads may be old
FIRST_LOOK_S, LATER_LOOK_S = 0.005, 0.1  # between two looks at who is still connected
log = logging.getLogger("uvicorn.error")  # where the server that this one is says the same


class EventServer(uvicorn.Server):
    """Uvicorn's server; setting `should_exit`, from any thread or signal, ends it at once.

    It also looks at once when its application's lifespan has ended (`on_tick`).
    """

    def __init__(self, config: uvicorn.Config) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        super().__init__(config)

    @property
    def should_exit(self) -> bool:
        """Return whether the server is to end, or ends."""
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
        """Let who is served finish, for the time that the configuration grants, and end.

        As uvicorn's does, which sleeps for a tenth of a second before it looks who is left.
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
            log.warning("cancel %s requests, which took longer than the end may", len(tasks))
            for task in tasks:
                task.cancel(msg="the server ends")
        if not self.force_exit:
            await self.lifespan.shutdown()

    async def _wait_tasks_to_complete(self) -> None:
        state, pause_s = self.server_state, FIRST_LOOK_S
        await asyncio.sleep(0)  # who was idle is gone after that
        while (state.connections or state.tasks) and not self.force_exit:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LATER_LOOK_S)
        for listener in self.servers:
            await listener.wait_closed()

    async def _await_lifespan(self) -> None:
        """Uvicorn sets this event when the application's lifespan ends, in whatever way."""
        ended: asyncio.Event | None = getattr(self.lifespan, "shutdown_event", None)
        if ended is not None:
            await ended.wait()
            self._news.set()
