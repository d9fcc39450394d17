"""An HTTP server that wakes when there is something to do.

Uvicorn's server looks ten times a second whether it should end, which is most of what an idle
process does. This one is told.
"""

import asyncio
from contextlib import suppress

import uvicorn

DATE_S = 1.0  # how long a date in answers' heads may be old


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
        """Whether the server is to end, or ends."""
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

    async def _await_lifespan(self) -> None:
        """Uvicorn sets this event when the application's lifespan ends, in whatever way."""
        ended: asyncio.Event | None = getattr(self.lifespan, "shutdown_event", None)
        if ended is not None:
            await ended.wait()
            self._news.set()
