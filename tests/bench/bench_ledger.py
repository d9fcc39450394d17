"""What the ledger's pages cost with many attempts in PostgreSQL: milliseconds and rows, per query.

    make bench-ledger ARGS="--attempts 1000000"

Fills a throw-away server (as the tests have it: no fsync, 64 MB of shared buffers), then asks what
the dashboard asks, over its own read-only connection. Cold is the first answer after the server
was started again, the file cache warm; warm the median of five more. Rows are what the server read
of tables and indexes for one answer. Before, the sums are made (`ledger.sums.rollups`), and
journals are applied on both databases (`ledgerrate`). Prints tables, writes
`build/bench-ledger.json`, and fails when a warm query takes more than 300 ms or the books take
less than 5,000 attempts a second. `--url` asks a ledger that is there and filled.
"""

import argparse
import contextlib
import importlib
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from ledgerrate import measure as rate_of  # noqa: E402  (the path is set above)
from ledgerrows import fill  # noqa: E402  (as above)
from measure import cpu_s  # noqa: E402  (as above)
from sqlalchemy import Connection, Engine, insert, text  # noqa: E402  (as above)

from deploy.parts import find_postgres  # noqa: E402  (as above)
from ledger.database import (  # noqa: E402  (as above)
    make_engine,
    migrate,
    open_readonly,
    snapshot,
    sqlite_url,
)
from ledger.economics.cost import TokenBasis  # noqa: E402  (as above)
from ledger.fleet.running import running  # noqa: E402  (as above)
from ledger.orm import tables as orm  # noqa: E402  (as above)
from ledger.queries import reads as queries  # noqa: E402  (as above)
from ledger.queries.load import loads  # noqa: E402  (as above)
from ledger.queries.rollups import rollup_progress  # noqa: E402  (as above)
from ledger.reporting_zone import ReportingZone  # noqa: E402  (as above)
from ledger.reports.facts import (  # noqa: E402  (as above)
    facts,
    flagged,
    home_pools,
    moments,
)
from ledger.reports.month_outlook import month_outlook  # noqa: E402  (as above)
from ledger.reports.survey import survey  # noqa: E402  (as above)
from ledger.reports.zone_days import day_moments  # noqa: E402  (as above)
from ledger.spans import DAY_US, HOUR_US, MINUTE_US, Scope  # noqa: E402  (as above)
from ledger.sums.rollups import Rollups  # noqa: E402  (as above)
from ledger.sums.samplehours import pack_hours  # noqa: E402  (as above)

BAR_MS = 300.0
BAR_PER_S = 5_000.0
WARM = 5
PERIODS = {"1 h": (HOUR_US, MINUTE_US), "24 h": (DAY_US, HOUR_US), "7 d": (7 * DAY_US, 6 * HOUR_US),
           "30 d": (30 * DAY_US, DAY_US)}  # fmt: skip
TEAMS = {"all": None, "large": "team-00", "small": "team-20"}
Asked = Callable[[Connection], object]


@dataclass(frozen=True)
class Figure:
    figure: str
    value: float  # ms, warm
    unit: str
    bar: float
    ok: bool
    cold_ms: float
    rows_read: int
    note: str = ""
    cpu_ms: float = 0.0  # of client and server process together, warm


def questions(end_us: int, pool: str) -> Iterator[tuple[str, Asked]]:
    """What pages ask, by page and period; the first page's survey also in its parts."""
    basis = TokenBasis.INPUT_OUTPUT
    for period, (span_us, bucket) in PERIODS.items():
        for name, team in TEAMS.items():
            scope = Scope.last(span_us, end_us, team)
            yield (
                f"survey {period} {name}",
                lambda c, s=scope, b=bucket: survey(c, s, bucket_us=b, basis=basis),
            )
    month, bucket = Scope.last(30 * DAY_US, end_us), DAY_US
    parts: dict[str, Asked] = {
        "facts": lambda c: facts(c, month, rollup_progress(c), everyone=True),
        "moments": lambda c: moments(c, month, rollup_progress(c), bucket_us=bucket),
        "homes": lambda c: home_pools(c, rollup_progress(c)),
        "loads": lambda c: loads(c, month, rollup_progress(c), basis=basis),
        "freshness": queries.freshness,
        "closed hours": lambda c: queries.hours(c, month, bucket_us=bucket),
        "hours by team": lambda c: queries.hours_by_team(c, month, bucket_us=bucket),
        "running": lambda c: running(
            c, queries.contracts(c)[0], queries.hours(c, month, bucket_us=bucket), month
        ),
    }
    kolkata = ReportingZone("Asia/Kolkata")
    parts |= {
        "moments by Kolkata's days": lambda c: day_moments(c, month, rollup_progress(c), kolkata),
        "end of the month, UTC": lambda c: month_outlook(c, end_us, ReportingZone()),
        "end of the month, Kolkata": lambda c: month_outlook(c, end_us, kolkata),
    }
    for name, asked in parts.items():
        yield f"  {name} 30 d", asked
    for period, (span_us, width) in PERIODS.items():
        yield from _of_period(period, Scope.last(span_us, end_us), width)
    yield (
        "last 5 minutes",
        lambda c: queries.cells(c, Scope(end_us - 5 * MINUTE_US, end_us), bucket_us=5 * MINUTE_US),
    )
    yield "engines now", queries.engines_now
    yield "hardware", queries.contracts
    for where in (
        {}, {"team": "team-20"}, {"model": "rerank"}, {"target": "pool:embed/0"},
        {"spill_reason": "unhealthy"}, {"flag": "disputed"},
        {"team": "team-30", "flag": "disputed"},
    ):  # fmt: skip
        said = ", ".join(where.values()) or "any"
        yield f"requests 30 d: {said}", lambda c, w=where: queries.attempts(c, month, where=w)


def _of_period(period: str, scope: Scope, width: int) -> Iterator[tuple[str, Asked]]:
    """What pages read beside the survey."""
    yield f"teams {period}", lambda c: queries.teams(c, scope)
    yield f"flagged {period}", lambda c: flagged(c, scope)
    yield f"refusals {period}", lambda c: queries.refusals(c, scope)
    yield f"ttft pairs {period}", lambda c: queries.ttft_pairs(c, scope, limit=600)
    for by in ("team", "model", "backend"):
        yield (
            f"spent {period} by {by}",
            lambda c, b=by: queries.spent(c, scope, by=b, bucket_us=width),
        )
    thin = queries.samples_bucket_us(scope.end_us - scope.start_us)
    yield (
        f"engine samples {period}",
        lambda c: queries.engine_samples(c, scope, bucket_us=thin),
    )
    yield f"first sample {period}", lambda c: queries.first_sample_us(c, scope)


@contextlib.contextmanager
def server(given: argparse.Namespace) -> Iterator[tuple[str, Callable[[], None]]]:
    """A URL, and what starts its server again."""
    if given.url:
        yield given.url, lambda: None
        return
    binaries = find_postgres()
    if binaries is None:
        raise SystemExit("no PostgreSQL: make parts")
    # By its name: tests import no tests, and this server is the tests' own.
    made = importlib.import_module("tests.conftest").PostgresServer(binaries)
    try:
        yield made.url(made.create("ledger")), made.restart
    finally:
        made.stop()


def add_up(engine: Engine) -> float:
    """Attempts a second, of all at once; as if they had been sealed, which takes longer."""
    with engine.begin() as connection:
        last = connection.execute(text("SELECT max(seq) FROM attempts")).scalar_one()
        none = {"number": 1, "sealed_us": 0, "postings_to": 0, "refusals_to": 0, "prices_to": 0}
        row = none | {"attempts_to": last, "rows": 0, "digest": b"", "chain": b""}
        connection.execute(insert(orm.SealRow), [row])
    since, rollups = time.monotonic(), Rollups(engine, rows_at_once=200_000)
    while rollups.follow():
        print(".", end="", file=sys.stderr, flush=True)
    took = time.monotonic() - since
    while pack_hours(engine, at_us=time.time_ns() // 1000):
        pass
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM (ANALYZE)"))
    return float(last / took)


def rates(url: str, requests: int) -> Iterator[Figure]:
    """What the books take, on each database; PostgreSQL's is the one with all the attempts."""
    with tempfile.TemporaryDirectory() as home:
        for name, where in (("SQLite", sqlite_url(Path(home) / "ledger.db")), ("PostgreSQL", url)):
            migrate(where)
            engine = make_engine(where, keep_open=True)
            rate = rate_of(engine, Path(home) / name, requests)
            engine.dispose()
            note = (
                f"CPU us an attempt: {rate.here_us:.0f} here, {rate.backend_us:.0f} backend; "
                f"wall {rate.wall_per_s:,.0f}/s, less waits for cores {rate.alone_per_s:,.0f}/s"
            )
            print(f"{name}: {rate.per_s:,.0f} attempts per CPU s; {note}", flush=True)
            yield Figure(
                f"attempts applied, {name}", rate.per_s, "per CPU s", BAR_PER_S,
                rate.per_s >= BAR_PER_S, 0.0, 0, note,
            )  # fmt: skip


def rows_read(connection: Connection) -> int:
    query = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables"
    return int(connection.execute(text(query)).scalar_one())


def ask(engine: Engine, watcher: Engine, asked: Asked) -> tuple[float, float, int]:
    """Milliseconds by the wall and of CPU, and rows read, of one answer on an open connection."""
    with watcher.connect() as connection:
        before = rows_read(connection)
    with snapshot(engine) as connection:
        backend = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        since, used = time.perf_counter(), time.process_time() + cpu_s([backend])
        asked(connection)
        took = time.perf_counter() - since
        used = time.process_time() + cpu_s([backend]) - used
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
        connection.rollback()
    with watcher.connect() as connection:
        return took * 1e3, used * 1e3, rows_read(connection) - before


def measure(url: str, restart: Callable[[], None], end_us: int, only: str) -> Iterator[Figure]:
    chosen = [question for question in questions(end_us, "llama-70b") if only in question[0]]
    restart()
    engine, watcher = open_readonly(url), make_engine(url)
    cold = {name: ask(engine, watcher, asked)[0] for name, asked in chosen}
    for name, asked in chosen:
        found = [ask(engine, watcher, asked) for _ in range(WARM)]
        warm = statistics.median(finding[0] for finding in found)
        cpu = statistics.median(finding[1] for finding in found)
        figure = Figure(
            name, warm, "ms", BAR_MS, warm <= BAR_MS, cold[name], found[-1][2], cpu_ms=cpu
        )
        verdict = "" if figure.ok else "  OVER"
        print(f"{name:<44} {cold[name]:10.1f} {warm:10.1f} {cpu:10.1f} {figure.rows_read:12,}"
              f"{verdict}", flush=True)  # fmt: skip
        yield figure
    engine.dispose()
    watcher.dispose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=1_000_000)
    parser.add_argument("--url", help="a ledger that is filled already")
    parser.add_argument("--requests", type=int, default=10_000, help="of the journals")
    parser.add_argument("--only", default="", help="queries whose name has this in it")
    given = parser.parse_args()
    with server(given) as (url, restart):
        migrate(url)
        engine = make_engine(url)
        if not given.url:
            since = time.monotonic()
            fill(engine, given.attempts, end_us=time.time_ns() // 1000)
            print(f"filled in {time.monotonic() - since:.0f} s: {url}", flush=True)
            print(f"added up at {add_up(engine):,.0f} attempts a second", flush=True)
        with engine.connect() as connection:
            size = connection.execute(text("SELECT pg_database_size(current_database())")).scalar()
            query = text("SELECT max(opened_us), count(*) FROM attempts")
            last_us, attempts = connection.execute(query).one()
        print(f"{attempts:,} attempts, {size / 1e9:.2f} GB\n")
        print(f"{'query':<44} {'cold ms':>10} {'warm ms':>10} {'CPU ms':>10} {'rows read':>12}")
        end_us = last_us - last_us % 20_000_000 + 20_000_000
        figures = list(measure(url, restart, end_us, given.only))
        engine.dispose()
        if not given.only:
            figures += list(rates(url, given.requests))
    about = {"attempts": attempts, "bytes": size, "cpus": os.cpu_count(),
             "machine": platform.platform(), "python": platform.python_version()}  # fmt: skip
    out = ROOT / "build" / "bench-ledger.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(
        json.dumps({"about": about, "figures": [asdict(figure) for figure in figures]}, indent=1)
    )
    short = [figure.figure for figure in figures if not figure.ok]
    if short:
        raise SystemExit(f"FELL SHORT: {', '.join(short)}")


if __name__ == "__main__":
    main()
