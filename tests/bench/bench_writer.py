"""What the ledger writer costs: CPU per request when there is much to do, when little, and idle.

The writer runs as its own process on SQLite (WAL, synchronous=FULL); journals are written here. A
request is an open and a settle on three budgets with its decision stored, its settle 20 ms after
its open. Prints a table and writes `build/bench-writer.json`: CPU time, from schedstat, less what
the idle writer takes; it survives neighbours. Run as `python tests/bench/bench_writer.py`.
"""

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from measure import cpu_s  # noqa: E402  (the path is set above)
from sqlalchemy import Engine, func, insert, select  # noqa: E402  (as above)

from ledger.database import make_engine, migrate, sqlite_url  # noqa: E402  (as above)
from ledger.journals.journal import JournalWriter  # noqa: E402  (as above)
from ledger.journals.records import (  # noqa: E402  (as above)
    AttemptOpened,
    AttemptSettled,
    ComparedCost,
    Hold,
    TokenCounts,
)
from ledger.orm import tables as orm  # noqa: E402  (as above)

SCOPES = ("org:acme", "team:search", "key:k1")
HOST = socket.gethostname()  # what the first of a ledger is called
ANSWER_S = 0.02
DAY_US = 86_400_000_000
IDLE_S = 5.0


def opened(number: int, now_us: int) -> AttemptOpened:
    own = number % 2 == 0
    window = now_us // DAY_US * DAY_US // 10**6
    return AttemptOpened(
        attempt_id=f"{number:032x}.1",
        request_id=f"{number:032x}",
        attempt_no=1,
        opened_us=now_us,
        key_id="k1",
        user_id="u1",
        team_id="search",
        org_id="acme",
        kind="chat",
        stream=False,
        model="chat-large",
        target="pool:llama-8b/0" if own else "openai/gpt-4o-mini",
        backend="own" if own else "api",
        pool="llama-8b" if own else None,
        engine="llama-8b/0" if own else None,
        provider=None if own else "openai",
        upstream_model="m",
        simulated=False,
        policy="default",
        policy_version="v1",
        reason="cheapest",
        spill_reason=None,
        price_version=1,
        bound_pusd=2_000_000,
        prompt_tokens_estimate=500,
        holds=tuple(Hold(f"{scope}@day", window, 2_000_000) for scope in SCOPES),
        tags=(("app", "web"),),
        decision=bytes(700),
    )


def settled(number: int, now_us: int) -> AttemptSettled:
    return AttemptSettled(
        attempt_id=f"{number:032x}.1",
        settled_us=now_us,
        status="finished",
        http_status=200,
        tokens=TokenCounts(input=480, cached=20, output=90),
        basis="reported",
        cost_pusd=1_234_567,
        ttft_us=20_000,
        duration_us=20_000,
        engine_us=9_000,
        finish_reason="stop",
        slo_met=True,
        compared=(ComparedCost("openai/gpt-4o-mini", 1, 1_500_000, cached_tokens=20),),
    )


class Bench:
    """One writer on a fresh ledger; `number` is the next request's."""

    def __init__(self, home: Path) -> None:
        url = sqlite_url(home / "ledger.db")
        migrate(url)
        self.engine: Engine = make_engine(url)
        with self.engine.begin() as connection:
            connection.execute(
                insert(orm.BudgetRow),
                [
                    {"id": f"{scope}@day", "scope": scope, "period": "day", "hard": True,
                     "limit_pusd": 10**18, "created_us": 0}
                    for scope in SCOPES
                ],
            )  # fmt: skip
            window = time.time_ns() // 1000 // DAY_US * DAY_US // 10**6
            connection.execute(
                insert(orm.GrantRow),
                [{"budget_id": f"{scope}@day", "window": window, "host": HOST} for scope in SCOPES],
            )
        self.journal = JournalWriter(home / "journal", "w0")
        command = [sys.executable, "-m", "ledger.writer", "--url", url, "--state-dir", str(home)]
        places = ["--journals", str(home / "journal"), "--run-dir", str(home / "run")]
        self.writer = subprocess.Popen([*command, *places], cwd=ROOT)
        self.number = 0
        self.request()
        self.wait()

    def close(self) -> None:
        self.writer.terminate()
        self.writer.wait()
        self.journal.close()
        self.engine.dispose()

    def cpu_s(self) -> float:
        return cpu_s([self.writer.pid])

    def request(self) -> None:
        self.open()
        self.settle(self.number - 1)

    def open(self) -> None:
        self.journal.append(opened(self.number, time.time_ns() // 1000))
        self.number += 1

    def settle(self, number: int) -> None:
        self.journal.append_ending(settled(number, time.time_ns() // 1000))

    def wait(self) -> None:
        """Until every request is settled in the books; rows must equal requests."""
        query = select(func.count()).where(orm.AttemptRow.settled_us.is_not(None))
        while True:
            if self.writer.poll() is not None:
                raise SystemExit(f"the writer ended with {self.writer.returncode}")
            with self.engine.connect() as connection:
                if connection.execute(query).scalar_one() == self.number:
                    return
            time.sleep(0.2)

    def idle_ms_per_s(self) -> float:
        time.sleep(1.0)  # what the last requests left to do is no idling
        before, since = self.cpu_s(), time.monotonic()
        time.sleep(IDLE_S)
        return (self.cpu_s() - before) * 1e3 / (time.monotonic() - since)

    def backlog_us(self, requests: int) -> float:
        """All at once: the writer works without a pause."""
        before = self.cpu_s()
        for _ in range(requests):
            self.request()
        self.wait()
        return (self.cpu_s() - before) * 1e6 / requests

    def paced_us(self, per_s: float, seconds: float, idle_ms_per_s: float) -> float:
        before, since, first = self.cpu_s(), time.monotonic(), self.number
        waiting: deque[tuple[float, int]] = deque()
        for place in range(int(per_s * seconds)):
            due = since + place / per_s
            while waiting and waiting[0][0] < due:
                at, number = waiting.popleft()
                time.sleep(max(0.0, at - time.monotonic()))
                self.settle(number)
            time.sleep(max(0.0, due - time.monotonic()))
            waiting.append((time.monotonic() + ANSWER_S, self.number))
            self.open()
        for _, number in waiting:
            self.settle(number)
        self.wait()
        idle_s = idle_ms_per_s * (time.monotonic() - since) / 1e3
        return (self.cpu_s() - before - idle_s) * 1e6 / (self.number - first)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000, help="of the backlog")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each paced scene")
    given = parser.parse_args()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as home:
        bench = Bench(Path(home))
        try:
            idle = figures["idle, CPU ms per s"] = bench.idle_ms_per_s()
            figures["backlog, CPU us per request"] = bench.backlog_us(given.requests)
            for per_s in (100, 500):
                name = f"{per_s} requests/s, CPU us per request above idle"
                figures[name] = bench.paced_us(per_s, given.seconds, idle)
        finally:
            bench.close()
    for name, value in figures.items():
        print(f"{name:<48} {value:10.1f}")
    out = ROOT / "build" / "bench-writer.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
