"""A running worker keeps up with what others put in force: prices, policies.

The ledger writer publishes the newest number of each in shared memory; a worker that knows a lower
one has it followed between two requests. What is under way goes on as it began.
"""

from pathlib import Path
from typing import Protocol

from gateway.clock import next_tick
from ledger.identity.keyring import KeyGeneration

LOOK_S = 0.5  # a glance at shared memory
FOLLOW_S = 2.0  # from a commit to a worker's use of it, the writer's look included


class Follower(Protocol):
    """`known`: the newest number that needs no look any more."""

    known: int

    async def follow(self, newest: int) -> bool:
        """Take over what is new; False when it cannot be read, or not be used, for now."""
        ...


async def keep_up(run_dir: Path, name: str, follower: Follower) -> None:
    """Until cancelled. `name`: of the published number in the run directory."""
    published = KeyGeneration(run_dir, name)
    try:
        while True:
            await next_tick(LOOK_S)
            newest = published.read()
            if newest > follower.known:
                await follower.follow(newest)
    finally:
        published.close()
