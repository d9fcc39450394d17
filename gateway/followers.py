"""Followers that load new prices and policies into a running worker.

The ledger writer publishes the newest version number of each in shared memory. A worker with a
lower number loads the new version between two requests. Open requests keep the version that they
began with.
"""

from pathlib import Path
from typing import Protocol

from gateway.clock import next_tick
from ledger.identity.keyring import KeyGeneration

LOOK_S = 0.5  # between reads of the shared memory
FOLLOW_S = 2.0  # maximum from a commit to its use in a worker, the writer's poll included


class Follower(Protocol):
    """Loader of new versions of one part of the configuration, e.g. `PolicyFollower`.

    `known` is the newest version that needs no further check.
    """

    known: int

    async def follow(self, newest: int) -> bool:
        """Load the newest version; return False if it cannot be read or applied now."""
        ...


async def keep_up(run_dir: Path, name: str, follower: Follower) -> None:
    """Poll the published version `name` and call the follower for newer ones, until cancelled."""
    published = KeyGeneration(run_dir, name)
    try:
        while True:
            await next_tick(LOOK_S)
            newest = published.read()
            if newest > follower.known:
                await follower.follow(newest)
    finally:
        published.close()
