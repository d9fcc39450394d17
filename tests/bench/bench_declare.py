"""How long a hold waits while a budget is declared in a month of many attempts.

    python tests/bench/bench_declare.py --attempts 300000

Books with that many attempts of the running month, and a budget in force for each of them. Then
budgets are declared: of a team, of all users, of the values of a tag, and the first once more as a
soft one that becomes hard. Meanwhile a host asks for grants on another budget, as the desk of any
host does. Prints seconds of the declaration and the longest that one grant took.
"""

import argparse
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench_ledger import server  # noqa: E402  (the path is set above)
from bench_writer import opened, settled  # noqa: E402  (as above)
from sqlalchemy import Engine, text  # noqa: E402  (as above)

from ledger.budgets.entered import BudgetSpec  # noqa: E402  (as above)
from ledger.budgets.grants import BudgetAccount, GrantNeed, grow  # noqa: E402  (as above)
from ledger.budgets.windows import window_at  # noqa: E402  (as above)
from ledger.database import make_engine, migrate, sqlite_url  # noqa: E402  (as above)
from ledger.declared import declare  # noqa: E402  (as above)
from ledger.orm import tables as orm  # noqa: E402  (as above)
from ledger.writing.fold import JournalItem  # noqa: E402  (as above)
from ledger.writing.repository import LedgerRepository  # noqa: E402  (as above)

AT_US = time.time_ns() // 1000
MONTH = window_at("month", "UTC", AT_US // 10**6).start_s
USERS, RUNS = 500, 2000


def spec(scope: str, *, hard: bool = True) -> BudgetSpec:
    return BudgetSpec(scope, "month", 10**15, hard=hard, timezone="UTC")


OTHER = spec("team:other")
STEPS = {
    "a team": [spec("team:search")],
    "each user": [spec("team:search"), spec("user:*")],
    "each run": [spec("team:search"), spec("user:*"), spec("tag:run=*")],
    "soft": [spec("team:search", hard=False), spec("user:*"), spec("tag:run=*")],
    "hard again": [spec("team:search"), spec("user:*"), spec("tag:run=*")],
}


def fill(engine: Engine, attempts: int) -> None:
    """Write one attempt as the writer does, and the others after it in SQL."""
    first = opened(0, AT_US)
    records = (first, settled(0, AT_US))
    items = [JournalItem("j", 1, place, b"", record) for place, record in enumerate(records)]
    LedgerRepository(engine, host="h").apply(items, (), at_us=AT_US)
    changed = {
        "attempt_id": "'a' || n || '.1'", "request_id": "'a' || n",
        "user_id": f"'u' || (n % {USERS})", "opened_us": f"{MONTH * 10**6} + n",
        "tags": f"CAST('{{\"run\":\"r' || (n % {RUNS}) || '\"}}' AS JSON)",
    }  # fmt: skip
    if engine.dialect.name == "sqlite":
        changed["tags"] = changed["tags"].replace("CAST(", "(").replace(" AS JSON)", ")")
    names = [name for name in orm.AttemptRow.__table__.columns.keys() if name != "seq"]  # noqa: SIM118  (not a dict)
    values = ", ".join(changed.get(name, f'"{name}"') for name in names)
    columns = ", ".join(f'"{name}"' for name in names)
    numbers = (
        f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {attempts})"
    )
    with engine.begin() as connection:
        connection.execute(
            text(f"INSERT INTO attempts ({columns}) {numbers} SELECT {values} FROM attempts, c")
        )


def measure(engine: Engine, budgets: list[BudgetSpec]) -> tuple[float, float]:
    """Return seconds of the declaration, and of the longest grant beside it."""
    stop, waits = threading.Event(), [0.0]
    account = BudgetAccount(OTHER.id, MONTH)

    def hold() -> None:
        while not stop.is_set():
            since = time.monotonic()
            grow(engine, "h", [GrantNeed(account, 1, 1)])
            waits.append(time.monotonic() - since)
            time.sleep(0.002)

    thread = threading.Thread(target=hold)
    thread.start()
    time.sleep(0.1)
    since = time.monotonic()
    declare(engine, contracts=(), budgets=budgets, config=("c", "c"), at_us=AT_US)
    took = time.monotonic() - since
    stop.set()
    thread.join()
    return took, max(waits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=300_000)
    parser.add_argument("--only", choices=("", "sqlite", "postgresql"), default="")
    parser.add_argument("--analyzed-empty", action="store_true", help="PostgreSQL: `holds` alone")
    given = parser.parse_args()
    given.url = None
    with ExitStack() as stack:
        urls = []
        if given.only in ("", "sqlite"):
            home = stack.enter_context(tempfile.TemporaryDirectory())
            urls.append(sqlite_url(Path(home) / "ledger.db"))
        if given.only in ("", "postgresql"):
            urls.append(stack.enter_context(server(given))[0])
        for url in urls:
            migrate(url)
            engine = make_engine(url)
            with engine.begin() as connection:
                if given.analyzed_empty and engine.dialect.name == "postgresql":
                    connection.execute(text("ALTER TABLE holds SET (autovacuum_enabled = off)"))
                    connection.execute(text("ANALYZE holds"))
            fill(engine, given.attempts)
            declare(engine, contracts=(), budgets=[OTHER], config=("c", "c"), at_us=AT_US)
            for name, budgets in STEPS.items():
                took, wait = measure(engine, [OTHER, *budgets])
                print(
                    f"{engine.dialect.name} {name}: {took:.2f} s, longest grant {wait:.3f} s",
                    flush=True,
                )
            engine.dispose()


if __name__ == "__main__":
    main()
