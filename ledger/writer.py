"""The ledger writer of a host: applies each worker's journal to the database exactly once.

Only the writer writes attempts, holds, postings and grants. A batch and its journal offsets share a
transaction, so a killed writer can resume anywhere. While the database is unavailable the writer
waits and the journals grow. A record that the database rejects is quarantined alone. The writer
also runs the budget broker, closes hours, seals the ledger, updates sums, publishes the newest
versions of keys, prices, policies and rates, deletes expired rows, and settles what dead workers
left open.
"""

import argparse
import asyncio
import contextlib
import gc
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from ledger import hosts
from ledger.budgets.at_stake import lacking_bound
from ledger.budgets.broker import BudgetBroker
from ledger.budgets.grants import release_idle
from ledger.commit_watch import CommitWatch, work_after_commit
from ledger.database import URL_VARIABLE, check_durable, make_engine
from ledger.declared import carry_budgets
from ledger.elapsed_time import ElapsedTime
from ledger.fleet.hours import close_hours
from ledger.fleet.paidrates import carry_rates
from ledger.followed_versions import FollowedVersions, LedgerVersions
from ledger.idempotency import forget_keys
from ledger.journals.findings import LackingBound
from ledger.journals.growth import JournalGrowth, JournalMarks
from ledger.journals.reader import JournalReader
from ledger.locks import take_lock
from ledger.retention import Retention, retire_old
from ledger.seals.annex import SealAnnex
from ledger.seals.audit_log import AuditLog
from ledger.seals.sealer import Sealer
from ledger.stored_responses import forget_answers
from ledger.sums.rollups import Rollups
from ledger.sums.samplehours import pack_hours
from ledger.writing.findings import FindingTotals, read_finding_totals
from ledger.writing.heap import limit_heaps
from ledger.writing.lag import WriterLag, write_lag
from ledger.writing.repository import DatabaseUnavailable, LedgerRepository
from ledger.writing.tail import JournalTailer, TailResult

COLLECT_S = 0.3  # a transaction's records; mostly an open and its settle: one row, written once
IDLE_STEP_S = 4.0  # maximum interval of journal reads; stalls are reported within 5 s
NEWS_S = 0.2  # key generation, prices, budgets: so soon after a commit
QUIET_S, QUIET_AFTER_S = 0.5, 10.0  # check interval once no journal has moved this long
IDLE_NEWS_S = 5.0  # maximum interval of lag reports without commits
HOUR_CHECK_S = 30.0
FORGET_S = 60.0  # idempotency keys that expired, and answers kept for them
RETIRE_S = 300.0  # attempts beyond their retention
TIDY_OBJECTS = 5_000  # new ones; of an idle writer they are fewer in half an hour
TIDY_S = 30.0  # what statements leave behind; the interpreter itself would wait for 50,000 of it
FINDINGS_S = 5.0  # findings in journals, of all hosts, for metrics
SEAL_S = 5.0  # rows are sealed within twice this
RETRY_FIRST_S, RETRY_LAST_S = 0.05, 2.0
DESK_SOCKET = "desk.sock"
LOCK_FILE = "writer.lock"


class WriterRunningError(RuntimeError):
    """A conflict: another live process is this host's ledger writer."""


class LedgerWriter:
    """The writer of one host. `run` ends after `stop` is set and the journals are applied."""

    def __init__(
        self,
        engine: Engine,
        *,
        journals: Path,
        run_dir: Path,
        host: str,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        retention: Retention = Retention(),  # noqa: B008  (a frozen value)
    ) -> None:
        run_dir.mkdir(parents=True, exist_ok=True)
        self._lock = _own(run_dir / LOCK_FILE)
        self._engine, self._host, self._run_dir, self._now_us = engine, host, run_dir, now_us
        self._growth = JournalGrowth(journals)
        self._desk = BudgetBroker(engine, host=host, socket=run_dir / DESK_SOCKET)
        repository, reader = LedgerRepository(engine, host=host), JournalReader(journals)
        self._tail = JournalTailer(repository, reader, now_us, self._bound_of)
        self._sealer, self._rollups = Sealer(engine), Rollups(engine)
        self._registers, self._annex = AuditLog(engine), SealAnnex(engine)
        self._retention, self._passed = retention, ElapsedTime(now_us)
        self._followed = FollowedVersions(engine, run_dir, self._desk.read_snapshot)
        self._sealed, self._counted = CommitWatch(engine), CommitWatch(engine)
        self._told: tuple[object, ...] = ()  # what of the lag counts at once, as told last
        self._tell_s, self._shares, self._quarantined = 0.0, False, 0
        self._findings = FindingTotals()
        self._away = False
        self._applied_us, self._moved_s = now_us(), 0.0
        self._caught_up = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await self._restore(stop)
            await self._desk.start()
            async with asyncio.TaskGroup() as tasks:
                chores = [
                    tasks.create_task(self._follow_news()),
                    tasks.create_task(self._every(HOUR_CHECK_S, self._close_hours)),
                    tasks.create_task(self._every(SEAL_S, self._seal)),
                    tasks.create_task(self._every(FINDINGS_S, self._look_at_findings)),
                    tasks.create_task(self._every(FORGET_S, self._forget)),
                    tasks.create_task(self._every(RETIRE_S, self._retire)),
                ]
                await self._run_tail(stop)
                for chore in chores:
                    chore.cancel()
            await self._release_money()
        finally:
            await self._desk.stop()
            for watch in (self._followed, self._sealed, self._counted, self._growth):
                watch.close()
            os.close(self._lock)

    def lag(self) -> WriterLag:
        return WriterLag(
            self._tail.backlog_bytes(), self._applied_us, self._away, self._quarantined,
            *(self._findings.count, self._findings.at_most_pusd, self._findings.unbounded),
            self._tail.stalled(),
        )  # fmt: skip

    def _bound_of(self, journal: str) -> LackingBound:
        return lacking_bound(self._desk.at_stake(journal))

    async def _run_tail(self, stop: asyncio.Event) -> None:
        retry_s = RETRY_FIRST_S
        while True:
            stopping, began_us = stop.is_set(), self._now_us()
            seen = self._growth.marks()
            try:
                step = await asyncio.to_thread(self._tail.step)
            except DatabaseUnavailable:
                self._away = True
                if stopping:
                    return  # the remaining records stay in the journals
                await _wait(stop, retry_s)
                retry_s = min(2 * retry_s, RETRY_LAST_S)
                continue
            self._away, retry_s = False, RETRY_FIRST_S
            self._note(step)
            if stopping and not step.moved:
                return
            if not step.more:
                self._applied_us = began_us
                self._caught_up.set()
                await self._rest(stop, seen)

    async def _rest(self, stop: asyncio.Event, seen: JournalMarks | None) -> None:
        """Wait until a journal differs from the marks `seen`, or until `IDLE_STEP_S` has passed."""
        now_s = asyncio.get_running_loop().time
        until_s = now_s() + IDLE_STEP_S
        await _wait(stop, COLLECT_S)
        while seen is not None and not stop.is_set() and now_s() < until_s:
            looked_us = self._now_us()
            if self._growth.marks() != seen:
                return
            self._applied_us = looked_us
            is_quiet = now_s() - self._moved_s > QUIET_AFTER_S
            await _wait(stop, _to_tick(QUIET_S if is_quiet else NEWS_S))

    def _note(self, step: TailResult) -> None:
        if step.moved:
            self._moved_s = asyncio.get_running_loop().time()
        self._quarantined += step.applied.quarantined
        self._desk.apply_spent(step.applied.spent)
        for journal in step.buried:
            self._desk.close_journal(journal)

    async def _release_money(self) -> None:
        """Release the host's idle grants if no worker holds any: the host may not come back."""
        await self._desk.stop()
        if not self._tail.journals():
            with contextlib.suppress(DBAPIError):
                seen = await asyncio.to_thread(self._desk.read_snapshot, self._now_us())
                await asyncio.to_thread(release_idle, self._engine, self._host, seen.standings)

    async def _restore(self, stop: asyncio.Event) -> None:
        """Read the grants before applying any record, however long the database is unavailable."""
        retry_s = RETRY_FIRST_S
        while True:
            try:
                await asyncio.to_thread(self._desk.restore, self._tail.journals())
            except (DBAPIError, OSError):
                self._away = True
                if stop.is_set():
                    return
                await _wait(stop, retry_s)
                retry_s = min(2 * retry_s, RETRY_LAST_S)
            else:
                return

    async def _follow_news(self) -> None:
        """Check for new versions `NEWS_S` after each reported commit, or poll without events."""
        while True:
            has_read = True
            with contextlib.suppress(DBAPIError, DatabaseUnavailable, OSError):  # as in `_every`
                has_read = await self._look_for_news()
            if has_read or await self._followed.await_commit(_to_tick(NEWS_S), _to_tick(QUIET_S)):
                await asyncio.sleep(_to_tick(NEWS_S))

    async def _look_for_news(self) -> bool:
        """Read new versions if there may be any. Return whether they were read.

        Most checks of an idle writer end here.
        """
        told = (self._away, self._tail.stalled(), self._quarantined, self._findings)
        now_s, is_told = asyncio.get_running_loop().time(), told == self._told and not self._shares
        if is_told and now_s < self._tell_s and self._followed.is_current(self._now_us()):
            return False
        await self._news()
        self._told, self._tell_s = told, now_s + IDLE_NEWS_S
        return True

    async def _news(self) -> None:
        news = await asyncio.to_thread(self._read_news)
        self._followed.publish(news)
        self._desk.refresh(news.budgets)
        await self._desk.share(news.budgets)
        self._shares = bool(news.budgets.accounts_to_share())

    def _read_news(self) -> LedgerVersions:
        """Publish the lag, then read the versions, in one thread call to save a switch."""
        write_lag(self._run_dir, self.lag())
        return self._followed.read(self._now_us())

    async def _close_hours(self) -> None:
        # An hour is closed only from a complete ledger; later records belong to later hours.
        await self._caught_up.wait()
        await asyncio.to_thread(self._carry_entries)
        while await asyncio.to_thread(close_hours, self._engine, at_us=self._applied_us):
            pass
        while await asyncio.to_thread(pack_hours, self._engine, at_us=self._now_us()):
            pass

    def _carry_entries(self) -> None:
        """Apply entered budgets, and rates that have started, before their hour closes."""
        with self._engine.begin() as connection:
            carry_rates(connection, self._now_us())
            carry_budgets(connection, self._now_us())

    async def _seal(self) -> None:
        """Seal attempts and add sealed ones to the sums; no further row can appear among them."""
        await work_after_commit(self._sealed, self._seal_books)

    async def _seal_books(self) -> None:
        while await asyncio.to_thread(self._seal_step):
            pass

    def _seal_step(self) -> bool:
        """Do the first pending step. Return whether there was one.

        All steps run in one thread call, which keeps an idle ledger cheap.
        """
        at_us = self._now_us()
        sealed = self._sealer.seal(at_us=at_us) or self._registers.follow(at_us=at_us)
        return bool(sealed or self._rollups.follow() or self._annex.follow(at_us=at_us))

    async def _look_at_findings(self) -> None:
        async def look() -> None:
            self._findings = await asyncio.to_thread(read_finding_totals, self._engine)

        await work_after_commit(self._counted, look)

    async def _forget(self) -> None:
        for forgotten in (forget_keys, forget_answers):
            while await asyncio.to_thread(forgotten, self._engine, self._passed.at_most_us()):
                pass

    async def _retire(self) -> None:
        await retire_old(self._engine, self._retention, now_us=self._passed.at_most_us())

    async def _every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            # The database is unavailable or a file is gone: the next round retries.
            with contextlib.suppress(DBAPIError, DatabaseUnavailable, OSError):
                await work()
            await asyncio.sleep(_to_tick(seconds))


def _to_tick(period_s: float) -> float:
    """Return the seconds to the next multiple of a period, so that periodic tasks coincide."""
    return period_s - asyncio.get_running_loop().time() % period_s


async def _collect_garbage() -> None:
    """Collect garbage between batches, for ever: statements are cycles of some MB per minute.

    This belongs to the process and is left out if the writer shares its process with much else.
    """
    while True:
        await asyncio.sleep(TIDY_S)
        if gc.get_count()[0] > TIDY_OBJECTS:
            gc.collect()


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


def _own(path: Path) -> int:
    try:
        return take_lock(path)
    except BlockingIOError as error:
        raise WriterRunningError(f"{path} is held by another ledger writer") from error


async def _main(given: argparse.Namespace) -> None:
    limit_heaps()
    engine = make_engine(given.url, keep_open=True)
    if not given.allow_unsafe_database:
        await asyncio.to_thread(check_durable, engine)
    gc.freeze()  # a batch has many rows that live shortly: a collection would walk them in vain
    gc.set_threshold(50_000, 50, 1000)  # `_collect_garbage` does more often
    claim = hosts.claim_of(given.state_dir)
    host = await asyncio.to_thread(hosts.claim_name, engine, claim, socket.gethostname())
    writer = LedgerWriter(
        engine,
        journals=given.journals,
        run_dir=given.run_dir,
        host=host,
        retention=Retention(given.retain_days, given.retain_entries_days),
    )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with asyncio.TaskGroup() as tasks:
        beside = [
            tasks.create_task(hosts.keep_claim(engine, claim)),
            tasks.create_task(_collect_garbage()),
        ]
        await writer.run(stop)
        for task in beside:
            task.cancel()
    engine.dispose()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m ledger.writer", description=__doc__)
    parser.add_argument(
        "--url",
        default=os.environ.get(URL_VARIABLE),
        help=f"SQLAlchemy URL of the ledger; default: ${URL_VARIABLE}, where others cannot read it",
    )
    parser.add_argument("--journals", type=Path, required=True, help="directory of all journals")
    parser.add_argument("--run-dir", type=Path, required=True, help="sockets and shared memory")
    parser.add_argument("--state-dir", type=Path, required=True, help="where the host's id lies")
    parser.add_argument(
        "--allow-unsafe-database",
        action="store_true",
        help="write to a database that may lose acknowledged commits",
    )
    parser.add_argument("--retain-days", type=int, help="delete single attempts that are older")
    parser.add_argument(
        "--retain-entries-days", type=int, help="condense postings and refusals that are older"
    )
    given = parser.parse_args(arguments)
    if not given.url:
        parser.error(f"name the ledger with --url or {URL_VARIABLE}")
    try:
        asyncio.run(_main(given))
    except* hosts.HostConflict as taken:
        parser.exit(1, f"{taken.exceptions[0]}\n")


if __name__ == "__main__":
    main()
