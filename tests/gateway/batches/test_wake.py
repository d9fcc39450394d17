"""A bell is heard once, by everyone who listens, and not what rang before."""

import asyncio
import os

from gateway.batches.wake import (
    WAKE_FILE,
    RunnerProgress,
    WakeSignal,
    read_progress,
    wait_for_work,
    wake_runner,
    write_progress,
)
from gateway.clock import Clock
from ledger.batches.store import BatchRecord, BatchStore
from ledger.database import make_engine


def test_it_is_heard_once_by_each(tmp_path) -> None:
    bells = [WakeSignal(tmp_path), WakeSignal(tmp_path)]
    assert [bell.has_rung() for bell in bells] == [False, False]
    wake_runner(tmp_path)
    assert [bell.has_rung() for bell in bells] == [True, True]
    assert [bell.has_rung() for bell in bells] == [False, False]
    assert not WakeSignal(tmp_path).has_rung()
    os.utime(tmp_path / WAKE_FILE, ns=(1, 1))
    assert bells[0].has_rung()


RECORD = BatchRecord("batch_1", "t", "k", "/v1/x", "24h", "file-1", 1, 10**18)


async def test_it_waits_for_the_bell(tmp_path, ledger_url) -> None:
    waiting = asyncio.create_task(wait_for_work(tmp_path, ledger_url, Clock()))
    done, _ = await asyncio.wait({waiting}, timeout=0.3)
    assert not done
    wake_runner(tmp_path)
    await asyncio.wait_for(waiting, 2)


async def test_what_is_open_from_before_needs_it_at_once(tmp_path, ledger_url) -> None:
    BatchStore(make_engine(ledger_url)).create(RECORD)
    await asyncio.wait_for(wait_for_work(tmp_path, ledger_url, Clock()), 2)


async def test_a_database_that_is_away_ends_nothing(tmp_path) -> None:
    url = "postgresql+psycopg://nobody@127.0.0.1:1/none"
    waiting = asyncio.create_task(wait_for_work(tmp_path, url, Clock()))
    done, _ = await asyncio.wait({waiting}, timeout=0.5)
    assert not done
    wake_runner(tmp_path)
    await asyncio.wait_for(waiting, 2)


def test_it_is_read_as_it_was_written(tmp_path) -> None:
    assert read_progress(tmp_path) is None
    for number in range(2):
        progress = RunnerProgress(batches=1, lines=2, out=3, ok=4, failed=5, again=number)
        write_progress(tmp_path, progress)
        assert read_progress(tmp_path) == progress
    assert [path.name for path in tmp_path.iterdir()] == ["batches.json"]
