"""Follower of policies: a newly activated policy set applies to the next request.

Rules, routes and plans are replaced in one step between two requests. Open requests continue as
decided. A set that does not fit this configuration is logged and skipped.
"""

import asyncio
import logging
from collections.abc import Callable

from sqlalchemy.exc import DBAPIError

from gateway.config.settings import Settings
from gateway.policies.sets import rules_of
from gateway.request.active_policies import ActivePolicies
from ledger.policies import PolicySet

_log = logging.getLogger(__name__)

ReadPolicies = Callable[[], PolicySet | None]


class PolicyFollower:
    """Follower of policy sets, one per worker; `read` may block."""

    def __init__(self, settings: Settings, read: ReadPolicies, in_force: ActivePolicies) -> None:
        """`settings` are those of the configuration file."""
        self.known = in_force.number
        self._settings = settings
        self._read = read
        self._in_force = in_force

    async def follow(self, _newest: int) -> bool:
        """Load the newest policy set; return False if it cannot be read or used now."""
        try:
            stored = await asyncio.to_thread(self._read)
        except DBAPIError:
            return False  # the next poll retries
        if stored is None or stored.number <= self.known:
            return False
        self.known = stored.number
        rules = rules_of(self._settings, stored)
        if rules.fault is not None:
            _log.warning(
                "a policy set does not fit and is not used set=%d error=%s",
                stored.number,
                rules.fault,
            )
            return False
        self._in_force.use(rules.settings, rules.version)
        return True
