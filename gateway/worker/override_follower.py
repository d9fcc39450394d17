"""Follower of overrides: a running worker applies operators' overrides and their ends.

A change applies to the next request. Open requests continue as decided, so disabling a target
drains it.
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
    """Follower of overrides, one per worker; `read` may block."""

    def __init__(
        self,
        read: ReadOverrides,
        in_force: ActivePolicies,
        wall_us: Callable[[], int],
        reset: Callable[[Sequence[Override]], None] = lambda _: None,
    ) -> None:
        """`reset` applies the resets of estimates, which are overrides without a duration."""
        self._read = read
        self._reset = reset
        self._in_force = in_force
        self._wall_us = wall_us
        self._all = read()
        self.known = max((member.number for member in self._all), default=0)
        reset(self._all)
        self.apply()

    async def follow(self, newest: int) -> None:
        """Read new overrides and apply those that hold now."""
        if newest > self.known:
            try:
                self._all = await asyncio.to_thread(self._read)
            except DBAPIError:
                return  # the next poll retries
            self.known = newest
            self._reset(self._all)
        self.apply()

    def apply(self) -> None:
        found = standing_overrides(self._all, self._wall_us())
        if found != self._in_force.overrides:
            self._in_force.overrule(found)

    async def run(self, run_dir: Path) -> None:
        """Follow overrides until cancelled."""
        published = KeyGeneration(run_dir, NEWEST_OVERRIDE_FILE)
        try:
            while True:
                await next_tick(LOOK_S)
                await self.follow(published.read())
        finally:
            published.close()
