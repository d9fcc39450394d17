"""A running worker follows the policies: a set that was put in force counts for the next request.

The ledger writer publishes the newest set's number in shared memory; a worker that knows another
one reads it and exchanges rules, routes and plans in one step between two requests. What is under
way goes on as it was decided. A set that does not fit this configuration is told and left out.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from gateway.inforce import InForce
from gateway.policysets import rules_of
from gateway.settings import Settings
from ledger.keyring import Generation
from ledger.policies import NEWEST_POLICY_FILE, PolicySet

LOOK_S = 0.5  # a glance at shared memory
FOLLOW_S = 2.0  # from a set's commit to a worker's use of it, the writer's look included
_log = logging.getLogger(__name__)

ReadPolicies = Callable[[], PolicySet | None]


async def follow_policies(
    run_dir: Path, settings: Settings, read: ReadPolicies | None, in_force: InForce
) -> None:
    """Keep a worker at the newest set; without `read` that of the start stays.

    `settings`: the configuration file's.
    """
    if read is None:
        return
    newest = Generation(run_dir, NEWEST_POLICY_FILE)
    try:
        await Repolicing(settings, newest, read, in_force).run()
    finally:
        newest.close()


class Repolicing:
    """One per worker; `read` may block."""

    def __init__(
        self, settings: Settings, newest: Generation, read: ReadPolicies, in_force: InForce
    ) -> None:
        self._settings = settings
        self._known = in_force.number
        self._newest = newest
        self._read = read
        self._in_force = in_force

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if self._newest.read() > self._known:
                await self.follow()

    async def follow(self) -> bool:
        """Take over what is new; False when it cannot be read, or not be used, for now."""
        try:
            stored = await asyncio.to_thread(self._read)
        except DBAPIError:
            return False  # the next look tries again
        if stored is None or stored.number <= self._known:
            return False
        self._known = stored.number
        rules = rules_of(self._settings, stored)
        if rules.fault is not None:
            _log.warning("policy set %d is not used here: %s", stored.number, rules.fault)
            return False
        self._in_force.use(rules.settings, rules.version)
        return True
