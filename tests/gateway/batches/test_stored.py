"""The loop never waits for the database, and a database that is away is a 503."""

import asyncio
import time

import pytest
from sqlalchemy.exc import OperationalError

from gateway.batches.stored import THREADS, Stored
from gateway.errors import RequestError
from ledger.database import make_engine, sqlite_url


@pytest.fixture
async def stored(tmp_path):
    one = Stored(make_engine(sqlite_url(tmp_path / "x.db")))
    yield one
    await one.aclose()


async def test_slow_work_holds_up_no_loop_and_no_shared_thread(stored) -> None:
    began = time.monotonic()
    slow = [asyncio.create_task(stored.call(time.sleep, 0.5)) for _ in range(THREADS)]
    await asyncio.sleep(0.01)
    assert await asyncio.to_thread(lambda: 7) == 7
    assert time.monotonic() - began < 0.4
    await asyncio.gather(*slow)


async def test_a_database_away_is_told(stored) -> None:
    def work() -> None:
        raise OperationalError("x", {}, Exception("database is locked"))

    with pytest.raises(RequestError) as raised:
        await stored.call(work)
    assert (raised.value.kind, raised.value.retry_after_s) == ("unavailable", 1.0)
