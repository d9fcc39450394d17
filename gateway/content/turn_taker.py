"""Work that goes on for long, in pieces between which others have their turn."""

import asyncio
from time import perf_counter
from typing import Final

LONGEST_S: Final = 5e-4


class TurnTaker:
    """Gives others a turn once this one has worked for a while."""

    __slots__ = ("_began_s",)

    def __init__(self) -> None:
        self._began_s = perf_counter()

    async def rest(self) -> None:
        """Let others go on if it is their turn."""
        if perf_counter() - self._began_s > LONGEST_S:
            await asyncio.sleep(0)
            self._began_s = perf_counter()
