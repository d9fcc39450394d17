"""How many attempts a second the books take from journals that lie there: by the CPU they cost.

A request is an open and a settle on three budgets, with its decision and a comparator stored. The
ledger writer's own pass applies them, in this process; on PostgreSQL the time of its backend is
counted too, read from /proc. One core's worth is what a writer gets, for a statement and its answer
follow each other: attempts a second = 1 / (CPU here + CPU of the backend). By the wall it is what
neighbours leave of the cores, so the time in which both could have run and had none is told apart.
"""

import itertools
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bench_writer import DAY_US, HOST, SCOPES, opened, settled
from measure import cpu_s, waited_s
from sqlalchemy import Engine, func, insert, select, text

from ledger.journals.journal import JournalWriter
from ledger.journals.reader import JournalReader
from ledger.orm import tables as orm
from ledger.writing.repository import LedgerRepository
from ledger.writing.tail import JournalTailer


@dataclass(frozen=True)
class Rate:
    attempts: int
    here_us: float  # CPU an attempt
    backend_us: float  # of the database's process
    wall_per_s: float
    alone_per_s: float  # by the wall, less the waits for a core: flushes and answers are in it

    @property
    def per_s(self) -> float:
        return 1e6 / (self.here_us + self.backend_us)


def measure(engine: Engine, home: Path, requests: int) -> Rate:
    now_us = time.time_ns() // 1000
    _budgets(engine, now_us)
    journal = JournalWriter(home / "journal", "w0")
    first = next(_numbers) * 10**9
    for number in range(first, first + requests):
        journal.append(opened(number, now_us))
        journal.append_ending(settled(number, now_us))
    tail = JournalTailer(
        LedgerRepository(engine, host=HOST), JournalReader(home / "journal"), lambda: now_us
    )
    backend = _backend(engine)
    here, there, since = time.process_time(), backend(cpu_s), time.monotonic()
    waited = waited_s([os.getpid()]) + backend(waited_s)
    while tail.step().moved:
        pass
    wall = time.monotonic() - since
    here, there = time.process_time() - here, backend(cpu_s) - there
    waited = waited_s([os.getpid()]) + backend(waited_s) - waited
    journal.close()
    query = select(func.count()).where(orm.AttemptRow.settled_us.is_not(None))
    with engine.connect() as connection:
        assert connection.execute(query).scalar_one() >= requests
    return Rate(
        requests, here * 1e6 / requests, there * 1e6 / requests, requests / wall,
        requests / max(wall - waited, here + there),
    )  # fmt: skip


_numbers = itertools.count(1)


def _budgets(engine: Engine, now_us: int) -> None:
    window = now_us // DAY_US * DAY_US // 10**6
    with engine.begin() as connection:
        if connection.execute(select(func.count()).select_from(orm.BudgetRow)).scalar_one():
            return
        connection.execute(
            insert(orm.BudgetRow),
            [{"id": f"{scope}@day", "scope": scope, "period": "day", "hard": True,
              "limit_pusd": 10**18, "created_us": 0} for scope in SCOPES],
        )  # fmt: skip
        connection.execute(
            insert(orm.GrantRow),
            [{"budget_id": f"{scope}@day", "window": window, "host": HOST} for scope in SCOPES],
        )


def _backend(engine: Engine) -> Callable[[Callable[[Iterable[int]], float]], float]:
    """Seconds of all backends of this database's connections; 0 where it runs in here."""
    if engine.dialect.name != "postgresql":
        return lambda _: 0.0
    query = text("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")

    def spent(of: Callable[[Iterable[int]], float]) -> float:
        with engine.connect() as connection:
            return of(connection.execute(query).scalars().all())

    return spent
