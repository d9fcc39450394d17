"""A runner is started by the first batch: one that is there, or one that a worker rings for."""

import asyncio

from gateway.batches.starting import until_needed
from gateway.batches.wake import wake
from gateway.clock import Clock
from ledger.batches.store import BatchRecord, BatchStore
from ledger.database import make_engine

RECORD = BatchRecord("batch_1", "t", "k", "/v1/x", "24h", "file-1", 1, 10**18)


async def test_it_waits_for_the_bell(tmp_path, ledger_url) -> None:
    waiting = asyncio.create_task(until_needed(tmp_path, ledger_url, Clock()))
    done, _ = await asyncio.wait({waiting}, timeout=0.3)
    assert not done
    wake(tmp_path)
    await asyncio.wait_for(waiting, 2)


async def test_what_is_open_from_before_needs_it_at_once(tmp_path, ledger_url) -> None:
    BatchStore(make_engine(ledger_url)).create(RECORD)
    await asyncio.wait_for(until_needed(tmp_path, ledger_url, Clock()), 2)


async def test_a_database_that_is_away_ends_nothing(tmp_path) -> None:
    url = "postgresql+psycopg://nobody@127.0.0.1:1/none"
    waiting = asyncio.create_task(until_needed(tmp_path, url, Clock()))
    done, _ = await asyncio.wait({waiting}, timeout=0.5)
    assert not done
    wake(tmp_path)
    await asyncio.wait_for(waiting, 2)
