"""Imports a LiteLLM database of 1,000 keys, 50 teams and 1,000,000 rows of spending, twice.

It fills a PostgreSQL of its own, imports into SQLite, and tells seconds, memory and whether the
second import changed anything. Writes `build/bench-litellm-import.json`.
"""

import argparse
import contextlib
import importlib
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from sqlalchemy import create_engine, text  # noqa: E402  (after the checkout's packages)

from deploy.parts import find_postgres  # noqa: E402  (as above)
from gateway.control.litellm.database_import import (  # noqa: E402  (as above)
    import_history,
    import_keys,
    survey_source,
)
from gateway.control.litellm.source_database import SourceDatabase  # noqa: E402  (as above)
from ledger.database import make_engine, migrate  # noqa: E402  (as above)
from ledger.identity.keychanges import ChangeAuthor  # noqa: E402  (as above)
from ledger.identity.keys import load_pepper  # noqa: E402  (as above)
from ledger.orm.tables import KeyRow, SpendHistoryRow  # noqa: E402  (as above)
from ledger.spend_history import history_totals  # noqa: E402  (as above)

TABLES = ROOT / "tests" / "gateway" / "control" / "litellm" / "tables.sql"
SPEND = """
INSERT INTO "LiteLLM_SpendLogs" (request_id, api_key, spend, prompt_tokens, completion_tokens,
  "startTime", model, model_group, custom_llm_provider, team_id, status, messages)
SELECT 'r' || lpad(i::text, 9, '0'), encode(sha256(('sk-bench-' || mod(i, %d))::bytea), 'hex'),
  mod(i, 997) * 1.1e-6, mod(i, 3000), mod(i, 700),
  timestamp '2026-08-01' + (i::double precision / %d) * interval '90 days', 'gpt-4o', 'chat',
  'openai', 't-' || lpad(mod(i, %d)::text, 3, '0'), 'success', '{"prompt": "never read"}'
FROM generate_series(0, %d - 1) AS i
"""


def fill(url: str, keys: int, teams: int, rows: int) -> str:
    """Fill the tables; the exact sum of spending, as PostgreSQL's numeric has it."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.begin() as connection:
        for statement in TABLES.read_text().split(";\n"):
            if statement.strip():
                connection.execute(text(statement))
        for number in range(teams):
            connection.execute(
                text('INSERT INTO "LiteLLM_TeamTable" (team_id, team_alias, max_budget, '
                     "budget_duration) VALUES (:id, :name, 100, '30d')"),
                {"id": f"t-{number:03}", "name": f"team {number}"},
            )  # fmt: skip
        for number in range(keys):
            token = sha256(f"sk-bench-{number}".encode()).hexdigest()
            connection.execute(
                text('INSERT INTO "LiteLLM_VerificationToken" (token, key_alias, team_id) '
                     "VALUES (:token, :name, :team)"),
                {"token": token, "name": f"key {number}", "team": f"t-{number % teams:03}"},
            )  # fmt: skip
        connection.exec_driver_sql(SPEND % (keys, rows, teams, rows))
        exact = connection.execute(
            text('SELECT sum(round(spend::text::numeric * 1e12)) FROM "LiteLLM_SpendLogs"')
        ).scalar_one()
    engine.dispose()
    return str(int(exact))


@contextlib.contextmanager
def database() -> Iterator[str]:
    """The URL of an empty database; its server ends with the block."""
    binaries = find_postgres()
    if binaries is None:
        raise SystemExit("no PostgreSQL: make parts")
    # By its name: tests import no tests, and this server is the tests' own.
    made = importlib.import_module("tests.conftest").PostgresServer(binaries)
    try:
        yield made.url(made.create("litellm"))
    finally:
        made.stop()


def memory_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def once(source: SourceDatabase, ledger_url: str, state: Path) -> dict[str, object]:
    began_s, pepper, now_us = time.monotonic(), load_pepper(state), time.time_ns() // 1000
    engine = make_engine(ledger_url)
    survey = survey_source(source, pepper, now_us)
    keys = import_keys(engine, survey.plan, pepper, ChangeAuthor("bench", None, now_us))
    keyed_s = time.monotonic() - began_s
    spent = import_history(source, engine, survey.plan, pepper, lambda _: None)
    with engine.connect() as connection:
        (total,) = history_totals(connection)
        rows = connection.execute(SpendHistoryRow.__table__.select()).all()
        stored = len(connection.execute(KeyRow.__table__.select()).all())
    engine.dispose()
    return {
        "seconds": round(time.monotonic() - began_s, 1), "seconds_keys": round(keyed_s, 1),
        "keys_made": keys.made, "keys": stored, "budgets": len(survey.plan.budgets),
        "days": spent.days, "requests": total.sums.requests, "cells": len(rows),
        "pusd": str(total.sums.spend_pusd), "peak_mib": round(memory_mib(), 1),
        "digest": sha256(repr(rows).encode()).hexdigest(),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--teams", type=int, default=50)
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, database() as url:
        exact = fill(url, given.keys, given.teams, given.rows)
        ledger = f"sqlite:///{folder}/ledger.db"
        migrate(ledger)
        before = memory_mib()
        source = SourceDatabase(url)
        first, second = (once(source, ledger, Path(folder)) for _ in range(2))
        source.close()
    assert first["pusd"] == second["pusd"] == exact
    assert first["digest"] == second["digest"]
    assert (second["keys_made"], second["days"]) == (0, 0)
    figures = {"first": first, "second": second, "mib_before": round(before, 1)}
    print(json.dumps(figures, indent=1))
    (ROOT / "build" / "bench-litellm-import.json").write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
