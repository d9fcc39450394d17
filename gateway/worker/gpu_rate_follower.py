"""A running worker follows what own GPUs cost: a rate that was entered is charged from then on.

Targets, routes and plans are exchanged in one step between two requests; what is under way is
charged as it was decided. With the database away the known rates stay.
"""

import asyncio
from collections.abc import Callable, Mapping

from sqlalchemy.exc import DBAPIError

from gateway.fleet.fleet import Fleet
from gateway.request.active_policies import ActivePolicies

ReadRates = Callable[[], Mapping[str, int | None]]


class GpuRateFollower:
    """One per worker. `read`: pico-USD an hour of one GPU, by pool; it may block."""

    def __init__(self, read: ReadRates, fleet: Fleet, in_force: ActivePolicies) -> None:
        self.known = 0
        self._read = read
        self._fleet = fleet
        self._in_force = in_force

    async def follow(self, newest: int) -> bool:
        """Take over what is new; False when it cannot be read for now, or nothing is."""
        try:
            rates = await asyncio.to_thread(self._read)
        except DBAPIError:
            return False  # the next look tries again
        self.known = newest
        if not self._fleet.rerate(rates):
            return False
        self._in_force.use(self._in_force.settings, self._in_force.version)
        return True
