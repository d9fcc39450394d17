"""Limited slots that teams take in turn, so that no team blocks another.

`FairPlaces.place` is the entry point. One team may hold all slots but one. A free slot goes to the
waiting team with the fewest slots, then to the one that has waited longest.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairPlaces:
    """Slots for concurrent work, of which one team may hold `of_team`."""

    def __init__(self, places: int, of_team: int) -> None:
        self._free, self._of_team = places, of_team
        self._taken: Counter[str] = Counter()
        # Teams in the order of their turns.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def place(self, team: str, wait_s: float) -> AsyncIterator[None]:
        """Hold a slot. Raises `TimeoutError` after `wait_s` seconds without one."""
        await self._acquire(team, wait_s)
        try:
            yield
        finally:
            self._release(team)

    async def _acquire(self, team: str, wait_s: float) -> None:
        granted = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(team, deque()).append(granted)
        self._grant()
        try:
            async with asyncio.timeout(wait_s):
                await granted
        except BaseException:
            if granted.done() and not granted.cancelled():
                self._release(team)
            else:
                self._leave(team, granted)
            raise

    def _release(self, team: str) -> None:
        self._free += 1
        self._taken[team] -= 1
        if not self._taken[team]:
            del self._taken[team]
        self._grant()

    def _leave(self, team: str, granted: "asyncio.Future[None]") -> None:
        line = self._waiting.get(team)
        if line is not None and granted in line:
            line.remove(granted)
            if not line:
                del self._waiting[team]

    def _grant(self) -> None:
        while self._free:
            teams = [team for team in self._waiting if self._taken[team] < self._of_team]
            if not teams:
                return
            team = min(teams, key=self._taken.__getitem__)  # the first of those with the fewest
            line = self._waiting.pop(team)
            granted = line.popleft()
            if line:
                self._waiting[team] = line  # its next turn is after all others'
            if not granted.cancelled():
                self._free -= 1
                self._taken[team] += 1
                granted.set_result(None)
