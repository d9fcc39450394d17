"""When a host needs its runner: with the first batch that is open, on any host of the database."""

import asyncio
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from gateway.batches.wake import Bell
from gateway.clock import Clock
from ledger.batches.store import BatchStore
from ledger.database import make_engine

LISTEN_S = 0.2
LOOK_S = 30.0  # for batches that other hosts' clients made


async def until_needed(run_dir: Path, url: str, clock: Clock) -> None:
    """Returns once there is work for a runner."""
    bell, engine = Bell(run_dir), make_engine(url)
    try:
        while not await _any_due(engine, clock):
            for _ in range(round(LOOK_S / LISTEN_S)):
                if bell.rang():
                    return
                await asyncio.sleep(LISTEN_S)
    finally:
        engine.dispose()


async def _any_due(engine: Engine, clock: Clock) -> bool:
    try:
        return await asyncio.to_thread(BatchStore(engine).any_due, clock.wall_us())
    except DBAPIError:
        return False  # away; it is looked again
