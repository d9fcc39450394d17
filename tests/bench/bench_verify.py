"""How long `ledger verify` takes for a million attempts, on SQLite and on PostgreSQL.

    make bench-verify ARGS="--attempts 1000000"

Attempts of three days, each with a request of its own, three holds, a comparator, two postings and
a decision; then sealed in links of 10,000 and added up, as the ledger's writer leaves them: nothing
that a check reads is missing, and the books are right. Prints seconds by the wall and of CPU, of
this process and of the database's, by check; writes `build/bench-verify.json` and fails above 60 s
of CPU or where something was found. CPU is the figure: the wall has the neighbours' time in it.
"""

import argparse
import contextlib
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench_ledger import server  # noqa: E402  (the path is set above)
from bench_writer import SCOPES, opened, settled  # noqa: E402  (as above)
from measure import cpu_s, waited_s  # noqa: E402  (as above)
from sqlalchemy import Engine, func, insert, select, text  # noqa: E402  (as above)

from ledger.database import (  # noqa: E402  (as above)
    make_engine,
    migrate,
    open_readonly,
    snapshot,
    sqlite_url,
)
from ledger.fleet.hours import close_hours  # noqa: E402  (as above)
from ledger.journals.records import AttemptOpened, AttemptSettled, Hold, TokenCounts  # noqa: E402  (as above)
from ledger.orm import tables as orm  # noqa: E402  (as above)
from ledger.prices.book import Price, PriceTerms, cost_pusd, rates_from  # noqa: E402  (as above)
from ledger.seals.sealer import Sealer  # noqa: E402  (as above)
from ledger.spans import DAY_US, HOUR_US  # noqa: E402  (as above)
from ledger.sums.rollups import Rollups  # noqa: E402  (as above)
from ledger.verify.checks import CHECKS  # noqa: E402  (as above)
from ledger.verify.collection import collecting_seldom  # noqa: E402  (as above)
from ledger.writing.repository import LedgerRepository  # noqa: E402  (as above)

LIMIT_S = 60.0
DAYS = 3
START_US = 1_780_272_000_000_000
PRICE = Price(1, "openai/gpt-4o-mini", "litellm", 0, PriceTerms(
    rates_from({"input": 150_000, "output": 600_000, "cached": 75_000})))  # fmt: skip


@dataclass(frozen=True)
class TimedCheck:
    database: str
    check: str
    wall_s: float
    cpu_s: float
    waited_s: float  # could have run, and had no core
    findings: int


def records(attempts: int) -> Iterator[AttemptOpened | AttemptSettled]:
    dice, step_us = random.Random(7), DAYS * DAY_US // attempts
    for number in range(attempts):
        at_us = START_US + number * step_us
        window = at_us // DAY_US * DAY_US // 10**6
        team = f"team-{dice.randrange(20):02}"
        holds = tuple(Hold(f"{scope}@day", window, 2_000_000_000) for scope in SCOPES)
        first = msgspec.structs.replace(
            opened(number, at_us), holds=holds, team_id=team, bound_pusd=2_000_000_000
        )
        tokens = TokenCounts(input=dice.randrange(900), cached=20, output=dice.randrange(300))
        own = first.backend == "own"
        cost = 1_234_567 if own else cost_pusd(tokens, PRICE)
        yield first
        yield msgspec.structs.replace(
            settled(number, at_us + 20_000), tokens=tokens, cost_pusd=cost
        )


def fill(engine: Engine, attempts: int) -> None:
    """Through the books' own door; then sealed and added up."""
    with engine.begin() as connection:
        row = {"version": 1, "name": PRICE.name, "since_us": 0, "source": "", "recorded_us": 0}
        connection.execute(
            insert(orm.PriceVersionRow), [row | {"price": msgspec.to_builtins(PRICE)}]
        )
        contract = {"pool": "llama-8b", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 8}
        rate = {"billing": "reserved", "pusd_per_hour": 9_800_000_000_000, "source": "contract"}
        since_day = {"since": date(2026, 6, 1), "recorded_us": START_US}
        connection.execute(insert(orm.GpuContractRow), [contract | rate | since_day])
    since = time.monotonic()
    LedgerRepository(engine, host="h").import_records(
        records(attempts), journal="j", at_us=START_US + DAYS * DAY_US
    )
    while close_hours(engine, at_us=START_US + DAYS * DAY_US + HOUR_US):
        pass
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM (ANALYZE)"))
    applied = time.monotonic()
    while Sealer(engine).seal(at_us=START_US + DAYS * DAY_US):
        pass
    sealed = time.monotonic()
    while Rollups(engine).follow():
        pass
    print(f"written in {applied - since:.0f} s, sealed in {sealed - applied:.0f} s, added up in "
          f"{time.monotonic() - sealed:.0f} s", flush=True)  # fmt: skip


def measure(name: str, url: str) -> Iterator[TimedCheck]:
    reader = open_readonly(url)
    with snapshot(reader) as connection, collecting_seldom():
        pids = [os.getpid()]
        if name == "PostgreSQL":
            pids.append(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
        for check in CHECKS:
            since = (time.monotonic(), cpu_s(pids), waited_s(pids))
            found = len(list(check(connection)))
            now = (time.monotonic(), cpu_s(pids), waited_s(pids))
            wall, cpu, waited = (b - a for a, b in zip(since, now, strict=True))
            timed = TimedCheck(name, check.__name__, wall, cpu, waited, found)
            print(f"{name:<11} {timed.check:<28} {wall:8.1f} {cpu:8.1f} {waited:8.1f} {found:6}",
                  flush=True)  # fmt: skip
            yield timed
    reader.dispose()


@contextlib.contextmanager
def ledgers(given: argparse.Namespace) -> Iterator[Iterator[tuple[str, str]]]:
    """Names and URLs of the databases that are asked for."""
    with contextlib.ExitStack() as stack:

        def each() -> Iterator[tuple[str, str]]:
            if given.only in ("", "sqlite"):
                home = stack.enter_context(tempfile.TemporaryDirectory())
                yield "SQLite", sqlite_url(Path(home) / "ledger.db")
            if given.only in ("", "postgresql"):
                given.url = None
                yield "PostgreSQL", stack.enter_context(server(given))[0]

        yield each()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=1_000_000)
    parser.add_argument("--only", choices=("", "sqlite", "postgresql"), default="")
    given = parser.parse_args()
    figures: list[TimedCheck] = []
    with ledgers(given) as found:
        for name, url in found:
            migrate(url)
            engine = make_engine(url)
            fill(engine, given.attempts)
            with engine.connect() as connection:
                rows = [
                    connection.execute(select(func.count()).select_from(item)).scalar_one()
                    for item in (orm.AttemptRow, orm.PostingRow, orm.HoldRow, orm.SealRow)
                ]
            engine.dispose()
            print("{:,} attempts, {:,} postings, {:,} holds, {:,} links".format(*rows))
            print(f"{'':<40} {'wall s':>8} {'CPU s':>8} {'waited':>8} {'found':>6}")
            figures += measure(name, url)
    over = False
    for name in dict.fromkeys(each_figure.database for each_figure in figures):
        mine = [each_figure for each_figure in figures if each_figure.database == name]
        wall, cpu, waited = (
            sum(getattr(item, figure) for item in mine)
            for figure in ("wall_s", "cpu_s", "waited_s")
        )
        found = sum(item.findings for item in mine)
        over |= cpu > LIMIT_S or found > 0
        print(f"{name:<11} {'all':<28} {wall:8.1f} {cpu:8.1f} {waited:8.1f} {found:6}; load "
              f"{os.getloadavg()[0]:.1f}")  # fmt: skip
    out = ROOT / "build" / "bench-verify.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps([asdict(each_figure) for each_figure in figures], indent=1))
    if over:
        raise SystemExit(f"FELL SHORT: over {LIMIT_S:.0f} s of CPU, or something was found")


if __name__ == "__main__":
    main()
