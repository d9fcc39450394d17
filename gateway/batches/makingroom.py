"""Lines give way: on an engine that comes near what live requests are promised, the newest ends.

One at a time and engine, ten times a second, until there is room again. What the line has used is
billed, and it is tried again when an engine is idle.
"""

import asyncio
from collections.abc import Callable

from gateway.api import HotApi
from gateway.batches.entrance import LineFlights
from gateway.dispatch import CLIENT_GONE
from router.idle import Promised, strained
from router.types import EngineState

LOOK_S = 0.1


class MakingRoom:
    """`state` freezes the engine of a row; `promised` is what live requests have there."""

    def __init__(
        self,
        hot: HotApi,
        flights: LineFlights,
        state: Callable[[int], EngineState],
        promised: Callable[[int], Promised],
    ) -> None:
        self._hot = hot
        self._flights = flights
        self._state = state
        self._promised = promised

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()

    def look(self) -> int:
        """How many lines were ended."""
        open_lines = {reply.request_id: reply for reply in self._hot.open_replies()}
        ended = 0
        for row, names in self._flights.by_engine(open_lines).items():
            if names and strained(self._state(row), self._promised(row)):
                newest = max((open_lines[name] for name in names), key=lambda one: one.opened_s)
                newest.end(CLIENT_GONE)
                ended += 1
        return ended
