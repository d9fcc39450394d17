"""Follower of GPU rates: a running worker charges a newly entered rate from then on.

Targets, routes and plans are replaced in one step between two requests. Open requests are charged
as decided. While the database is unavailable, the known rates stay.
"""

import asyncio
from collections.abc import Callable, Mapping

from sqlalchemy.exc import DBAPIError

from gateway.fleet.fleet import Fleet
from gateway.request.active_policies import ActivePolicies

ReadRates = Callable[[], Mapping[str, int | None]]


class GpuRateFollower:
    """Follower of GPU rates, one per worker.

    `read` returns pico-USD per hour of one GPU by pool; it may block.
    """

    def __init__(self, read: ReadRates, fleet: Fleet, in_force: ActivePolicies) -> None:
        self.known = 0
        self._read = read
        self._fleet = fleet
        self._in_force = in_force

    async def follow(self, newest: int) -> bool:
        """Load the newest rates; return False if they cannot be read now or nothing changed."""
        try:
            rates = await asyncio.to_thread(self._read)
        except DBAPIError:
            return False  # the next poll retries
        self.known = newest
        if not self._fleet.rerate(rates):
            return False
        self._in_force.use(self._in_force.settings, self._in_force.version)
        return True
