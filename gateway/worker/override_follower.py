"""A running worker follows what operators hold over the policies, and when that is over.

It counts for the next request. What is under way goes on as it was decided: to disable a target is
to drain it.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from gateway.clock import next_tick
from gateway.followers import LOOK_S
from gateway.policies.overrides import standing_overrides
from gateway.request.active_policies import ActivePolicies
from ledger.identity.keyring import KeyGeneration
from ledger.overrides import NEWEST_OVERRIDE_FILE, Override

ReadOverrides = Callable[[], Sequence[Override]]


class OverrideFollower:
    """One per worker; `read` may block."""

    def __init__(
        self,
        read: ReadOverrides,
        in_force: ActivePolicies,
        wall_us: Callable[[], int],
        reset: Callable[[Sequence[Override]], None] = lambda _: None,
    ) -> None:
        """`reset` carries out the orders among all overrides that are over at once."""
        self._read = read
        self._reset = reset
        self._in_force = in_force
        self._wall_us = wall_us
        self._all = read()
        self.known = max((member.number for member in self._all), default=0)
        reset(self._all)
        self.apply()

    async def follow(self, newest: int) -> None:
        """Read what is new, and use what stands at this moment."""
        if newest > self.known:
            try:
                self._all = await asyncio.to_thread(self._read)
            except DBAPIError:
                return  # the next look tries again
            self.known = newest
            self._reset(self._all)
        self.apply()

    def apply(self) -> None:
        found = standing_overrides(self._all, self._wall_us())
        if found != self._in_force.overrides:
            self._in_force.overrule(found)

    async def run(self, run_dir: Path) -> None:
        """Until cancelled."""
        published = KeyGeneration(run_dir, NEWEST_OVERRIDE_FILE)
        try:
            while True:
                await next_tick(LOOK_S)
                await self.follow(published.read())
        finally:
            published.close()
