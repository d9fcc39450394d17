"""The loop never waits for the database, and a database that is away is a 503."""

import asyncio
import threading

import pytest
from sqlalchemy.exc import OperationalError

from gateway.batches.batch_database import BatchDatabase
from gateway.errors import RequestError
from ledger.database import make_engine, sqlite_url

PATIENCE_S = 20.0


@pytest.fixture
async def stored(tmp_path):
    batch_database = BatchDatabase(make_engine(sqlite_url(tmp_path / "x.db")))
    yield batch_database
    await batch_database.aclose()


async def test_slow_work_holds_up_no_loop_and_no_shared_thread(stored) -> None:
    """It ends when both have gone on meanwhile; more of it than there are shared threads."""
    gone_on = threading.Event()

    def work() -> bool:
        in_time = gone_on.wait(PATIENCE_S)
        gone_on.set()  # for the rest
        return in_time

    works = [asyncio.create_task(stored.call(work)) for _ in range(50)]
    await asyncio.sleep(0)
    assert await asyncio.to_thread(lambda: 7) == 7
    assert not any(work.done() for work in works)
    gone_on.set()
    assert await asyncio.gather(*works) == [True] * 50


async def test_a_database_away_is_told(stored) -> None:
    def work() -> None:
        raise OperationalError("x", {}, Exception("database is locked"))

    with pytest.raises(RequestError) as raised:
        await stored.call(work)
    assert (raised.value.kind, raised.value.retry_after_s) == ("unavailable", 1.0)
