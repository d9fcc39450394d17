"""The writer process: journals into books while it is killed, keys published, workers buried."""

import asyncio
import gc
import os
import signal
import weakref
from collections import Counter
from datetime import UTC, datetime

import pytest
from sqlalchemy import func, insert, select

from deploy import warmstart
from ledger import writer as writer_module
from ledger.budgets.client import BudgetClient
from ledger.fleet.model_routes import ModelRoute, record_routes
from ledger.idempotency import IdempotencyRecord, claim_key
from ledger.identity.keys import KeyRing, KeySpec, create_key, load_pepper, revoke_key
from ledger.journals.homes import FOLDER
from ledger.journals.journal import JournalWriter
from ledger.journals.reader import JournalReader
from ledger.journals.records import Hold
from ledger.orm import tables as orm
from ledger.retention import Retention
from ledger.seals import compact
from ledger.stored_responses import store_response
from ledger.sums.rollups import Rollups
from ledger.writer import (
    COLLECT_S,
    DESK_SOCKET,
    LedgerWriter,
    WriterRunningError,
    _collect_garbage,
)
from ledger.writing.lag import read_lag
from ledger.writing.repository import DatabaseUnavailable, LedgerRepository

NOW_US = 1_780_000_000_000_000
DAY = 1_779_926_400


class RunningWriter:
    """A writer in this process, stopped at the end of the block."""

    def __init__(self, engine, directory, **options):
        self.writer = LedgerWriter(
            engine,
            journals=directory / "journal",
            run_dir=directory / "run",
            host="h1",
            now_us=lambda: NOW_US,
            **options,
        )
        self.stop = asyncio.Event()

    async def __aenter__(self):
        self.task = asyncio.create_task(self.writer.run(self.stop))
        return self.writer

    async def __aexit__(self, *_):
        self.stop.set()
        await self.task


async def until(true):
    async with asyncio.timeout(60):
        while True:
            answer = true()
            if await answer if asyncio.iscoroutine(answer) else answer:
                return
            await asyncio.sleep(0.02)


def count(engine, *where):
    with engine.connect() as connection:
        query = select(func.count()).select_from(orm.AttemptRow).where(*where)
        return connection.execute(query).scalar_one()


async def test_what_is_journaled_is_in_the_books_when_the_writer_stops(
    engine, tmp_path, opened, settled
):
    journal = JournalWriter(tmp_path / "journal", "w0")
    async with RunningWriter(engine, tmp_path) as writer:
        for number in range(50):
            journal.append(opened(number))
            await journal.append_durable(settled(number))
        await until(lambda: count(engine, orm.AttemptRow.settled_us.is_not(None)) == 50)
        await until(lambda: writer.lag().backlog_bytes == 0)
        await until(lambda: (lag := read_lag(tmp_path / "run")) and not lag.backlog_bytes)
        journal.append(opened(99))
    assert count(engine) == 51  # the last record of a run too
    journal.close()


async def test_idempotency_keys_and_kept_answers_that_expired_are_forgotten(engine, tmp_path):
    for name, expires_us in [("old", NOW_US), ("new", NOW_US + 1)]:
        asking = IdempotencyRecord("k1", name, b"d" * 32, f"req_{name}")
        claim_key(engine, asking, now_us=0, expires_us=expires_us)
        store_response(engine, asking, b"sealed", expires_us=expires_us)

    def left():
        with engine.connect() as connection:
            tables = (orm.SubmissionRow.name, orm.KeptAnswerRow.name)
            return [connection.execute(select(name)).scalars().all() for name in tables]

    async with RunningWriter(engine, tmp_path):
        await until(lambda: left() == [["new"], ["new"]])


async def test_attempts_retire_only_where_days_are_said(
    engine, tmp_path, opened, settled, write, seal_all
):
    old = NOW_US - 36 * 86_400_000_000
    for number in (1, 2):
        at = {"opened_us": old, "holds": ()}
        write(engine, opened(number, **at), settled(number, settled_us=old + 1))
    seal_all(engine)
    while Rollups(engine).follow():
        pass
    async with RunningWriter(engine, tmp_path / "without") as writer:
        await writer._retire()
        assert count(engine) == 2
    async with RunningWriter(engine, tmp_path / "with", retention=Retention(35)) as writer:
        await until(lambda: count(engine) == 1)


async def test_what_seals_leave_out_and_routes_are_entered_by_themselves(
    engine, tmp_path, opened, settled, write
):
    write(engine, opened(1, content="card:mask"), settled(1))
    record_routes(engine, [ModelRoute("chat", "any", ())], at_us=1)

    def kinds():
        with engine.connect() as connection:
            return sorted(connection.execute(select(orm.SealAnnexRow.kind)).scalars())

    async with RunningWriter(engine, tmp_path):
        await until(lambda: kinds() == ["link", "route"])


async def test_postings_are_condensed_once_their_attempts_went(
    engine, tmp_path, opened, settled, write, seal_all, monkeypatch
):
    monkeypatch.setitem(compact.ROWS_AT_ONCE, engine.dialect.name, 1)
    old = NOW_US - 40 * 86_400_000_000
    for number in (1, 2):
        at = {"opened_us": old, "holds": ()}
        write(engine, opened(number, **at), settled(number, settled_us=old + 1))
    seal_all(engine, rows_at_once=1)
    while Rollups(engine).follow():
        pass

    def condensed():
        with engine.connect() as connection:
            return connection.execute(select(func.sum(orm.PostingCompactionRow.postings))).scalar()

    async with RunningWriter(engine, tmp_path / "young", retention=Retention(35, 41)) as writer:
        await until(lambda: count(engine) == 1)
        await writer._retire()
        assert not condensed()
    async with RunningWriter(engine, tmp_path / "old", retention=Retention(35, 39)):
        await until(condensed)


async def test_an_attempt_that_is_short_is_one_row_written_once(
    engine, tmp_path, opened, settled, monkeypatch
):
    applied = []
    apply = LedgerRepository.apply

    def seen(self, items, moves, *, at_us):
        applied.append(len(items))
        return apply(self, items, moves, at_us=at_us)

    monkeypatch.setattr(LedgerRepository, "apply", seen)
    journal = JournalWriter(tmp_path / "journal", "w0")
    async with RunningWriter(engine, tmp_path):
        await asyncio.sleep(COLLECT_S)  # the first look is over
        for number in range(10):
            journal.append(opened(number))
            await asyncio.sleep(0.01)
            await journal.append_durable(settled(number))
            await asyncio.sleep(0.02)
        await until(lambda: count(engine, orm.AttemptRow.settled_us.is_not(None)) == 10)
    assert len(applied) < 10  # one for each record, when each is applied as it comes
    journal.close()


@pytest.mark.parametrize("caught_up", [True, False])
async def test_hours_close_under_traffic_but_never_from_books_that_lag(
    engine, tmp_path, opened, monkeypatch, caught_up
):
    """`backlog` never falls to 0 here; the books are complete up to each look at the journals."""
    hour_us = 3_600_000_000
    with engine.begin() as connection:
        connection.execute(
            orm.GpuContractRow.__table__.insert().values(
                pool="chat", gpu_type="H200", gpus_per_replica=1, replicas=1, billing="reserved",
                pusd_per_hour=1, recorded_us=0,
                since=datetime.fromtimestamp((NOW_US - 90_000_000_000) / 1e6, UTC).date(),
            )
        )  # fmt: skip
    monkeypatch.setattr(JournalReader, "backlog_bytes", lambda *_: 1)
    if not caught_up:

        def away(*_, **__):
            raise DatabaseUnavailable

        monkeypatch.setattr(LedgerRepository, "apply", away)
    journal = JournalWriter(tmp_path / "journal", "w0")
    journal.append(opened(1))
    closed = select(func.max(orm.GpuHourRow.hour_us))

    def last():
        with engine.connect() as connection:
            return connection.execute(closed).scalar_one()

    async with RunningWriter(engine, tmp_path) as writer:
        if caught_up:
            await until(lambda: last() is not None)
            assert NOW_US - 2 * hour_us < last() <= NOW_US - hour_us
        else:
            await until(lambda: writer.lag().away)
            await asyncio.sleep(2 * COLLECT_S)
            assert last() is None
    journal.close()


async def test_the_writers_process_collects_cycles_between_batches(monkeypatch):
    class Cycle:
        def __init__(self):
            self.itself = self

    monkeypatch.setattr("ledger.writer.TIDY_S", 0.05)
    monkeypatch.setattr("ledger.writer.TIDY_OBJECTS", 0)
    gc.disable()  # the interpreter itself would wait for tens of thousands
    left = weakref.ref(Cycle())
    assert left() is not None, "the control"
    collecting = asyncio.create_task(_collect_garbage())
    try:
        await until(lambda: left() is None)
    finally:
        collecting.cancel()
        gc.enable()


async def test_where_little_is_new_nothing_is_collected(monkeypatch):
    """Of an idle writer every collection walked all that it ever made, in vain."""
    collected, looked = [], asyncio.Event()

    def count() -> tuple[int, int, int]:
        looked.set()
        return 5_000, 0, 0

    monkeypatch.setattr("ledger.writer.TIDY_S", 0.0)
    monkeypatch.setattr(writer_module.gc, "get_count", count)
    monkeypatch.setattr(writer_module.gc, "collect", collected.append)
    collecting = asyncio.create_task(_collect_garbage())
    await looked.wait()
    collecting.cancel()
    await asyncio.gather(collecting, return_exceptions=True)
    assert collected == []


async def test_one_writer_per_host(engine, tmp_path):
    async with RunningWriter(engine, tmp_path):
        with pytest.raises(WriterRunningError):
            RunningWriter(engine, tmp_path)
    async with RunningWriter(engine, tmp_path):
        pass


async def test_with_the_database_away_journals_grow_and_are_caught_up(
    engine, tmp_path, opened, settled, monkeypatch
):
    apply, calls = LedgerRepository.apply, Counter()

    def flaky(self, items, moves, *, at_us):
        calls["away"] += 1
        if calls["away"] <= 4:
            raise DatabaseUnavailable
        return apply(self, items, moves, at_us=at_us)

    monkeypatch.setattr(LedgerRepository, "apply", flaky)
    journal = JournalWriter(tmp_path / "journal", "w0")
    async with RunningWriter(engine, tmp_path) as writer:
        for number in range(20):
            journal.append(opened(number))
            await journal.append_durable(settled(number))
        await until(lambda: writer.lag().away)
        await until(lambda: count(engine) == 20)
        await until(lambda: not writer.lag().away)
    assert calls["away"] > 4
    journal.close()


async def test_a_revocation_reaches_workers_through_the_published_generation(engine, tmp_path):
    pepper = load_pepper(tmp_path)
    with engine.begin() as connection:
        key = create_key(connection, KeySpec("k"), pepper=pepper, now_us=NOW_US)
    async with RunningWriter(engine, tmp_path):
        ring = KeyRing(engine, tmp_path / "run", tmp_path)
        await until(lambda: ring._generation.read() == 1)
        assert await ring.lookup(key.token, NOW_US) is not None
        with engine.begin() as connection:
            revoke_key(connection, key.key_id, now_us=NOW_US)

        async def gone():
            return await ring.lookup(key.token, NOW_US) is None

        await until(gone)
        ring.close()


async def test_a_dead_workers_money_comes_back_once_its_journal_is_in_the_books(
    engine, tmp_path, opened
):
    with engine.begin() as connection:
        connection.execute(
            orm.BudgetRow.__table__.insert().values(
                id="team:a@day", scope="team:a", period="day", limit_pusd=1000, hard=True,
                timezone="UTC", created_us=0,
            )
        )  # fmt: skip
    journal = JournalWriter(tmp_path / "journal", "w0")
    async with RunningWriter(engine, tmp_path) as writer:
        socket = tmp_path / "run" / DESK_SOCKET
        dead = BudgetClient(socket, worker="w0", journal=journal.name, now_us=lambda: NOW_US)
        other = BudgetClient(socket, worker="w1", now_us=lambda: NOW_US)
        await dead.connect()
        await other.connect()
        holds = await dead.hold("r1.1", ["team:a"], 600)
        assert holds == (Hold("team:a@day", DAY, 600),)
        journal.append(opened(1, holds=holds, bound_pusd=600))
        await dead.hold("r2.1", ["team:a"], 300)  # never journaled: it was killed before
        dead._return_loans = lambda *_: None
        await dead.aclose()
        assert not isinstance(await other.hold("r3.1", ["team:a"], 101), tuple)
        journal.close()
        await until(lambda: count(engine, orm.AttemptRow.flag == "lost") == 1)

        async def back():
            return isinstance(await other.hold("r4.1", ["team:a"], 400), tuple)

        await until(back)
        assert not isinstance(await other.hold("r5.1", ["team:a"], 1), tuple)
        assert writer.lag().quarantined == 0
        await other.aclose()


@pytest.mark.parametrize("ended", [True, False])
async def test_a_host_that_ends_leaves_what_nobody_there_can_spend(
    engine, tmp_path, opened, settled, ended
):
    """One that never comes back kept it from all others until the window's end."""
    with engine.begin() as connection:
        row = {"id": "team:a@day", "scope": "team:a", "period": "day", "limit_pusd": 10**6,
               "hard": True, "created_us": 0}  # fmt: skip
        connection.execute(insert(orm.BudgetRow), [row])
    journal = JournalWriter(tmp_path / "journal", "w0")
    async with RunningWriter(engine, tmp_path):
        socket = tmp_path / "run" / DESK_SOCKET
        worker = BudgetClient(socket, worker="w0", journal=journal.name, now_us=lambda: NOW_US)
        await worker.connect()
        holds = await worker.hold("r1.1", ["team:a"], 600)
        journal.append(opened(1, holds=holds, bound_pusd=600))
        await journal.append_durable(settled(1, cost_pusd=400))
        if ended:
            await worker.aclose()
            journal.close()
    with engine.connect() as connection:
        query = select(orm.GrantRow.granted_pusd, orm.GrantRow.spent_pusd)
        granted, spent = connection.execute(query).one()
        of_all = connection.execute(select(orm.BudgetWindowRow.granted_pusd)).scalar_one()
    assert spent == 400
    assert granted == of_all
    assert (granted == 400) is ended  # else a worker that lives may still spend it
    if not ended:
        await worker.aclose()
        journal.close()


WORKER = """
import asyncio, sys
from pathlib import Path
from ledger.journals.journal import JournalWriter
from ledger.journals.reader import JournalReader
from ledger.journals.records import AttemptOpened, AttemptSettled, Hold, TokenCounts

def opened(name):
    who = ("k", None, "t", "o", "chat", True, "m", "p/m", "api", None, None, "p", "m", False)
    why = ("d", "v", "cheapest", None, 1, 900, 9)
    holds = (Hold("team:t@day", 1779926400, 900),)
    return AttemptOpened(name, name[:-2], 1, 1780000000000000, *who, *why, holds=holds)

def settled(name, cost):
    tokens = TokenCounts(1, 0, 0, 0, 2)
    return AttemptSettled(name, 1780000001000000, "finished", 200, tokens, "reported", cost, 1, 2)

async def main(directory, name, stop):
    journal = JournalWriter(Path(directory), name, segment_bytes=200_000)
    number = 0
    while not Path(stop).exists():
        number += 1
        attempt = f"{name}-{number}.1"
        journal.append(opened(attempt))
        await journal.append_durable(settled(attempt, 7 + number % 5))
        print(attempt, flush=True)
        await asyncio.sleep(0.004)
    journal.append(opened(f"{name}-open.1"))

asyncio.run(main(*sys.argv[1:]))
"""
WORKERS, KILLS = 2, 4


def start_writer(url, directory):
    words = ["--url", url, "--allow-unsafe-database", "--journals", directory / "journal"]
    places = ["--run-dir", directory / "run", "--state-dir", directory]
    program = warmstart.MODULE.format("ledger.writer")
    return warmstart.programs().start([*words, *places], output=2, program=program)


def start_worker(directory, name):
    """Works until `stop` appears; `{name}.log` lists what it acknowledged."""
    words = [directory / "journal", name, directory / "stop"]
    with (directory / f"{name}.log").open("wb") as log:
        return warmstart.programs().start(words, output=log.fileno(), errors=2, program=WORKER)


async def answers(socket):
    try:
        _, writer = await asyncio.open_unix_connection(socket)
    except OSError:
        return False
    writer.close()
    return True


async def test_killed_again_and_again_no_row_is_lost_or_doubled(database_url, engine, tmp_path):
    """Real processes, real SIGKILL: acknowledged by a worker = one settled row in the books."""
    workers = [start_worker(tmp_path, f"w{number}") for number in range(WORKERS)]
    writer = start_writer(database_url, tmp_path)
    try:
        for _ in range(KILLS):
            before = count(engine)
            await until(lambda before=before: count(engine) > before)
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait()
            writer = start_writer(database_url, tmp_path)
        (tmp_path / "stop").touch()
        assert [worker.wait() for worker in workers] == [0] * WORKERS
        logs = [(tmp_path / f"w{number}.log").read_text() for number in range(WORKERS)]
        acknowledged = {line for log in logs for line in log.split()}
        assert acknowledged
        await until(lambda: count(engine, orm.AttemptRow.flag == "lost") == WORKERS)
        await until(lambda: answers(tmp_path / "run" / DESK_SOCKET))
        writer.send_signal(signal.SIGTERM)
        assert writer.wait(timeout=30) == 0
    finally:
        for process in (*workers, writer):
            process.kill()
            process.wait()
    with engine.connect() as connection:
        settled = connection.execute(
            select(orm.AttemptRow.attempt_id, orm.AttemptRow.cost_pusd).where(
                orm.AttemptRow.flag.is_(None)
            )
        ).all()
        assert {row.attempt_id for row in settled} == acknowledged
        assert len(settled) == len(acknowledged)
        spent = connection.execute(select(orm.BudgetWindowRow.spent_pusd)).scalar_one()
        costs = sum(row.cost_pusd for row in settled)
        assert spent == costs + WORKERS * 900  # what was lost counts at its bound
        posted = connection.execute(
            select(orm.exact_sum(orm.PostingRow.amount_pusd)).where(
                orm.PostingRow.account == "expense:team:t"
            )
        ).scalar_one()
        assert posted == costs
    assert list((tmp_path / "journal" / FOLDER).iterdir()) == []


async def test_an_idle_writer_reads_nothing(engine, tmp_path, opened, settled, monkeypatch):
    """Red before: five times a second the books' news, three times the journals, in threads.

    Whoever commits or writes a record is seen all the same.
    """
    if engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL has no cheap sign of a commit")
    calls = Counter()
    keeper = engine.connect()  # as a worker has it open

    def count_calls(function, name):
        def counted(*given, **named):
            calls[name] += 1
            return function(*given, **named)

        return counted

    journal = JournalWriter(tmp_path / "journal", "w0")
    writer = LedgerWriter(
        engine, journals=tmp_path / "journal", run_dir=tmp_path / "run", host="h1",
        now_us=lambda: NOW_US,
    )  # fmt: skip
    looks = []
    look = writer._look_for_news

    async def looked():
        looks.append(1)
        return await look()

    monkeypatch.setattr(writer, "_look_for_news", looked)
    for holder, name in ((writer, "_read_news"), (writer._tail, "step"), (writer, "_seal_step")):
        monkeypatch.setattr(holder, name, count_calls(getattr(holder, name), name))
    monkeypatch.setattr(writer_module, "IDLE_NEWS_S", 3600.0)
    monkeypatch.setattr(writer_module, "IDLE_STEP_S", 3600.0)
    for name in ("NEWS_S", "QUIET_S", "SEAL_S"):
        monkeypatch.setattr(writer_module, name, 0.01)
    stop = asyncio.Event()
    task = asyncio.create_task(writer.run(stop))

    async def rest():
        """Until nothing was read over many looks."""
        async with asyncio.timeout(60):
            before, since = Counter(calls), len(looks)
            while len(looks) < since + 40:
                if before != calls:
                    before, since = Counter(calls), len(looks)
                await asyncio.sleep(0.01)

    await rest()
    first = Counter(calls)
    journal.append(opened(1))
    await journal.append_durable(settled(1))
    await until(lambda: count(engine, orm.AttemptRow.settled_us.is_not(None)) == 1)
    await rest()
    assert calls["step"] > first["step"]
    assert calls["_read_news"] > first["_read_news"]
    assert calls["_seal_step"] > first["_seal_step"]
    stop.set()
    await task
    journal.close()
    keeper.close()
