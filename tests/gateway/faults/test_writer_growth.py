"""Hours of the ledger's writer in minutes: it alone, as fast as it reads, on a clock of its own.

    make test-long ARGS="-k writers_size -s"

The real process (`ledger.writer`) with its chores hurried; its clock moves with the requests, so an
hour has some thousand of them, is closed and added up. Each hour's size is the median of its second
half, after the close of the one before; growth is the median of the hours' differences, counted as
if an hour had a soak's requests. What is reached once (a table that doubles, a thread's connection)
moves one or two of the differences and not their median; what is kept of each request or of each
close moves all. SQLite's caches are bounded by their setting and take long to fill: here they are
small, so that they are full at once. The controls: a leak of 64 bytes a request, and the writer as
it was when a soak found it growing (large caches that take turns, a heap a thread, statements left
to the interpreter).
"""

import json
import mmap
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select

from ledger.database import make_engine, migrate, open_readonly
from ledger.journals.journal import JournalWriter
from ledger.journals.records import AttemptOpened, AttemptSettled, ComparedCost, Hold, TokenCounts
from ledger.orm import tables as orm
from ledger.writing.lag import read_lag

CHORES = 12.0  # times as often as they are
HOUR_HAS = int(os.environ.get("SOAK_HOUR_HAS", "36000"))  # requests
CONTROL_HOUR_HAS = 12_000
SOAK_HAS = 36 * 3600  # the bound is of a soak's hour
WARM_HOURS, HOURS = 2, int(os.environ.get("SOAK_HOURS", "9"))
CONTROL_HOURS = 5
GROWN_MIB_PER_H = 1.0
LEAK_BYTES = 64
CACHE_KIB = 256
AT_ONCE = 100
LOOK_S = 0.1
TICK_S = 0.006
BEHIND_BYTES = 300_000  # what the writer has not applied: some hundred and fifty requests
HOUR_S, MIB = 3600, 1024 * 1024
SCOPES = ("org:acme", "team:search", "key:k1")

# The writer's own process: its chores and its clock, hurried; and what a control does to it.
HURRIED = """
import json, mmap, os, sys
import ledger.database, ledger.writer as writer
told = json.loads(os.environ["HURRIED"])
clock = mmap.mmap(os.open(told["clock"], os.O_RDONLY), 8, prot=mmap.PROT_READ)
for name in ("COLLECT_S", "NEWS_S", "HOUR_CHECK_S", "FORGET_S", "RETIRE_S", "SEAL_S", "TIDY_S"):
    setattr(writer, name, getattr(writer, name) / told["speed"])
ordinary, kept, applied = writer.LedgerWriter.__init__, [], writer.JournalTailer.step
def hurried(self, *given, **options):
    now_us = lambda: int.from_bytes(clock[:8], "little")
    ordinary(self, *given, **{**options, "now_us": now_us})
writer.LedgerWriter.__init__ = hurried
ledger.database.KEPT_CACHE_KIB = told["cache_kib"]
if told["control"] == "leak":
    def leaking(self):
        step = applied(self)
        kept.extend(os.urandom(told["bytes"]) for _ in range(step.applied.attempts))
        return step
    writer.JournalTailer.step = leaking
elif told["control"] == "as it was":
    ledger.database.KEPT_CACHE_KIB = ledger.database.CACHE_KIB
    ledger.database.KEPT["pool_use_lifo"] = False
    writer.limit_heaps, writer.TIDY_S = lambda: None, 1e9
writer.main()
"""


def opened(name: str, now_us: int, *, own: bool) -> AttemptOpened:
    window = now_us // (24 * HOUR_S * 10**6) * 24 * HOUR_S
    return AttemptOpened(
        attempt_id=f"{name}.1", request_id=name, attempt_no=1, opened_us=now_us, key_id="k1",
        user_id="u1", team_id="search", org_id="acme", kind="chat", stream=own,
        model="chat", target="pool:main/0" if own else "p/m", backend="own" if own else "api",
        pool="main" if own else None, engine="main/0" if own else None,
        provider=None if own else "p", upstream_model="m", simulated=False, policy="default",
        policy_version="v1", reason="cheapest", spill_reason=None, price_version=1,
        bound_pusd=2_000_000, prompt_tokens_estimate=500,
        holds=tuple(Hold(f"{scope}@day", window, 2_000_000) for scope in SCOPES),
        tags=(("app", "web"),), decision=bytes(700),
    )  # fmt: skip


def settled(name: str, now_us: int, dice: random.Random) -> AttemptSettled:
    return AttemptSettled(
        attempt_id=f"{name}.1", settled_us=now_us, status="finished", http_status=200,
        tokens=TokenCounts(input=dice.randrange(900), output=dice.randrange(300)), basis="reported",
        cost_pusd=dice.randrange(10**7), ttft_us=dice.randrange(10**6), duration_us=10**6,
        engine_us=dice.randrange(10**5), finish_reason="stop", slo_met=True,
        compared=(ComparedCost("openai/gpt-4o-mini", 1, 1_500_000),),
    )  # fmt: skip


class Hours:
    """A writer on a fresh ledger, and its clock, which waits for it: a burst is no growth."""

    def __init__(self, home: Path, url: str, control: str) -> None:
        self.url, self.asked = url, 0
        self.hour_has = CONTROL_HOUR_HAS if control else HOUR_HAS
        self.looks: list[tuple[float, float]] = []
        self._home = home
        self._start_us = int(time.time() // HOUR_S * HOUR_S + HOUR_S / 2) * 10**6
        (home / "clock").write_bytes(bytes(8))
        file = os.open(home / "clock", os.O_RDWR)
        self._clock = mmap.mmap(file, 8)
        os.close(file)
        self._tell(self._start_us)
        self._prepare()
        self._journal = JournalWriter(home / "journal", "w0")
        told = {"speed": CHORES, "clock": str(home / "clock"), "control": control,
                "bytes": LEAK_BYTES, "cache_kib": CACHE_KIB}  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-c", HURRIED, "--url", url, "--state-dir", str(home), "--journals",
             str(home / "journal"), "--run-dir", str(home / "run")],
            env={**os.environ, "HURRIED": json.dumps(told)},
        )  # fmt: skip

    def feed(self, hours: int) -> None:
        dice, looked_s = random.Random(1), 0.0
        while self.asked < hours * self.hour_has:
            time.sleep(TICK_S)
            if time.monotonic() > looked_s + LOOK_S:
                looked_s = time.monotonic()
                self._look()
            lag = read_lag(self._home / "run")
            if lag is None or lag.backlog_bytes > BEHIND_BYTES:
                continue
            self._tell(self.now_us + AT_ONCE * HOUR_S * 10**6 // self.hour_has)
            first, self.asked = self.asked, self.asked + AT_ONCE
            names = [f"req_{self.now_us // 1000:012x}{n:016x}" for n in range(first, self.asked)]
            for name in names:
                self._journal.append(opened(name, self.now_us, own=name[-1] in "02468ace"))
            time.sleep(TICK_S)
            for name in names:
                self._journal.append_ending(settled(name, self.now_us, dice))

    @property
    def now_us(self) -> int:
        return int.from_bytes(self._clock[:8], "little")

    def _tell(self, now_us: int) -> None:
        self._clock[:8] = now_us.to_bytes(8, "little")

    def rows(self) -> int:
        reader = open_readonly(self.url)
        with reader.connect() as connection:
            query = select(func.count()).where(orm.AttemptRow.settled_us.is_not(None))
            found = connection.execute(query).scalar_one()
        reader.dispose()
        return found

    def close(self) -> None:
        self._journal.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def grown_mib_per_h(self) -> float:
        """Of a soak's hours; the clock starts at half past, so each hour here has one close."""
        late: dict[int, list[float]] = {}
        for at_h, size in self.looks:
            if at_h % 1 >= 0.5:
                late.setdefault(int(at_h), []).append(size)
        sizes = [statistics.median(late[hour]) for hour in sorted(late)]
        grown = [after - before for before, after in pairwise(sizes[WARM_HOURS - 1 :])]
        found = statistics.median(grown) * SOAK_HAS / self.hour_has
        print(f"{self.asked} requests, {len(sizes)} hours of {self.hour_has}: MiB "
              f"{', '.join(f'{size:.2f}' for size in sizes)}; {found:+.2f} MiB/h")  # fmt: skip
        return found

    def _look(self) -> None:
        assert self.process.poll() is None, "the writer ended"
        words = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().split()
        self.looks.append((self.asked / self.hour_has, int(words[words.index("Rss:") + 1]) / 1024))

    def _prepare(self) -> None:
        migrate(self.url)
        engine, now_us = make_engine(self.url), self._start_us
        window = now_us // (24 * HOUR_S * 10**6) * 24 * HOUR_S
        day = datetime.fromtimestamp(now_us / 1e6 - HOUR_S, UTC).date()
        with engine.begin() as connection:
            connection.execute(insert(orm.BudgetRow), [
                {"id": f"{scope}@day", "scope": scope, "period": "day", "hard": True,
                 "limit_pusd": 10**18, "created_us": 0} for scope in SCOPES])  # fmt: skip
            connection.execute(insert(orm.GrantRow), [
                {"budget_id": f"{scope}@day", "window": window, "host": "h1"}
                for scope in SCOPES])  # fmt: skip
            connection.execute(insert(orm.GpuContractRow), [
                {"pool": "main", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 1,
                 "billing": "reserved", "pusd_per_hour": 3_500_000_000_000, "since": day,
                 "recorded_us": now_us, "source": "contract"}])  # fmt: skip
        engine.dispose()


@contextmanager
def running(home: Path, url: str, control: str = "") -> Iterator[Hours]:
    hours = Hours(home, url, control)
    try:
        yield hours
    finally:
        hours.close()


def closed(url: str) -> int:
    reader = open_readonly(url)
    with reader.connect() as connection:
        found = connection.execute(select(func.count()).select_from(orm.GpuHourRow)).scalar_one()
    reader.dispose()
    return found


@pytest.mark.long
def test_the_writers_size_stays_over_hours(tmp_path, sqlite_url, patiently) -> None:
    with running(tmp_path, sqlite_url) as hours:
        hours.feed(HOURS)
        patiently(lambda: hours.rows() == hours.asked, 60)
        patiently(lambda: closed(sqlite_url) >= HOURS, 60)  # the first began at half past
    assert hours.grown_mib_per_h() <= GROWN_MIB_PER_H


@pytest.mark.long
@pytest.mark.parametrize("control", ["leak", "as it was"])
def test_a_writers_size_that_grows_is_seen(tmp_path, sqlite_url, control: str) -> None:
    with running(tmp_path, sqlite_url, control) as hours:
        hours.feed(CONTROL_HOURS)
    assert hours.grown_mib_per_h() > GROWN_MIB_PER_H
