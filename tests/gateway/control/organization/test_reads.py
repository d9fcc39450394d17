"""Reads run beside the event loop: it goes on meanwhile, and none lasts or waits for ever."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from gateway.control.organization.reads import AT_ONCE, WAITING, LedgerReads
from gateway.errors import RequestError
from ledger.database import make_engine, open_readonly, sqlite_url

MANY = 100  # turns of a loop; it makes thousands in the time of a read
READ_S = 0.5
SLOW = text(
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
)


@pytest.fixture
def engine(tmp_path: Path):
    writer = make_engine(sqlite_url(tmp_path / "ledger.db"))
    with writer.begin() as connection:
        connection.execute(text("CREATE TABLE one (n INTEGER)"))
    writer.dispose()
    reader = open_readonly(sqlite_url(tmp_path / "ledger.db"))
    yield reader
    reader.dispose()


def slow(connection: Connection) -> int:
    return int(connection.execute(SLOW).scalar_one())


async def turns_during(work) -> int:
    """How often the loop went round while `work` ran."""
    turns = 0
    task = asyncio.ensure_future(work())
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    return turns


async def test_the_loop_goes_on_and_the_read_is_ended(engine) -> None:
    reads = LedgerReads(engine, limit_s=READ_S)

    async def read() -> None:
        with pytest.raises(RequestError) as told:
            await reads.run(slow)
        assert (told.value.kind, told.value.retry) == ("timeout", False)

    assert await turns_during(read) > MANY
    reads.close()


async def test_negative_control_a_read_on_the_loop_stops_it(engine) -> None:
    reads = LedgerReads(engine, limit_s=READ_S)

    async def read() -> None:
        with pytest.raises(RequestError):
            reads._read(slow)

    assert await turns_during(read) < MANY / 10
    reads.close()


async def test_what_it_reads_is_handed_back_and_writes_are_refused(engine) -> None:
    reads = LedgerReads(engine)
    assert await reads.run(lambda connection: connection.execute(text("SELECT 7")).scalar()) == 7
    with pytest.raises(RequestError) as told:
        await reads.run(lambda connection: connection.execute(text("INSERT INTO one VALUES (1)")))
    assert told.value.row.status == 503
    reads.close()


async def test_too_many_are_told_to_come_back(engine) -> None:
    reads = LedgerReads(engine, limit_s=READ_S)
    running = [asyncio.ensure_future(reads.run(slow)) for _ in range(AT_ONCE + WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(RequestError) as told:
        await reads.run(slow)
    assert (told.value.row.status, told.value.kind) == (503, "overloaded")
    reads.close()
    await asyncio.gather(*running, return_exceptions=True)
    await asyncio.sleep(0)
    assert reads._taken == 0


async def test_a_database_that_is_away_is_503(tmp_path: Path) -> None:
    reader = open_readonly(sqlite_url(tmp_path / "none.db"))
    reads = LedgerReads(reader)
    with pytest.raises(RequestError) as told:
        await reads.run(slow)
    assert (told.value.row.status, told.value.retry_after_s) == (503, 2.0)
    reads.close()
    reader.dispose()
