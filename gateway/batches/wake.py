"""Files through which workers, parent and runner of a host signal batches to each other.

The time of one file marks a new batch. Reading it takes microseconds, so that processes need not
poll the database ten times a second. Another file holds the runner's progress.
"""

import asyncio
from pathlib import Path

import msgspec
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from gateway.clock import Clock
from ledger.batches.store import BatchStore
from ledger.database import make_engine
from ledger.file_watch import FileWatch
from ledger.host_notes import read_note, write_note

WAKE_FILE = "batches.wake"


def wake_runner(run_dir: Path) -> None:
    (run_dir / WAKE_FILE).touch(mode=0o600)


class WakeSignal:
    """Signal file; `has_rung` returns whether it was touched since the last call."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / WAKE_FILE
        self._heard_ns = self._time_ns()

    def has_rung(self) -> bool:
        before, self._heard_ns = self._heard_ns, self._time_ns()
        return self._heard_ns != before

    def _time_ns(self) -> int:
        try:
            return self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return 0


LISTEN_S = 0.2  # polling interval of the file without change notification
LOOK_S = 30.0  # polling interval of the database, for batches of other hosts


async def wait_for_work(run_dir: Path, url: str, clock: Clock) -> None:
    """Wait until a batch is open on any host of the database."""
    (run_dir / WAKE_FILE).touch(mode=0o600)  # a file watch needs an existing file
    bell, engine = WakeSignal(run_dir), make_engine(url)
    watch = FileWatch(run_dir / WAKE_FILE)
    try:
        while not await _any_due(engine, clock):
            until_s = clock.now_s() + LOOK_S
            while (left_s := until_s - clock.now_s()) > 0:
                if bell.has_rung():
                    return
                await watch.changed(min(LISTEN_S, left_s), left_s)
    finally:
        watch.close()
        engine.dispose()


async def _any_due(engine: Engine, clock: Clock) -> bool:
    try:
        return await asyncio.to_thread(BatchStore(engine).any_due, clock.wall_us())
    except DBAPIError:
        return False  # unavailable; the next poll retries


PROGRESS_FILE = "batches.json"


class RunnerProgress(msgspec.Struct, frozen=True):
    """Progress of a runner, counted since its start.

    `batches` and `lines` are those open in the database.
    """

    batches: int
    lines: int
    out: int
    ok: int
    failed: int
    again: int


def write_progress(run_dir: Path, progress: RunnerProgress) -> None:
    write_note(run_dir / PROGRESS_FILE, progress)


def read_progress(run_dir: Path) -> RunnerProgress | None:
    """Return the runner's progress; `None` if none ever ran."""
    return read_note(run_dir / PROGRESS_FILE, RunnerProgress)
