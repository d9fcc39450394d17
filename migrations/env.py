"""Run migrations, one process at a time, while writers are running.

Each migration has its own transaction. The URL comes from `ledger.database.migrate` or, for
`alembic` on the command line, from the environment variable `BREAKEVEN_LEDGER_URL`. A migration
waits at most `LOCK_TIMEOUT_MS` for a lock, because writers queue behind it while it waits; it then
rolls back and is retried. Completed migrations are kept.
"""

import os
import time

from alembic import context
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError

from ledger.database import make_engine
from ledger.orm import tables as orm
from ledger.orm.partial_index import state_conditions

LOCK_TIMEOUT_MS = 100
TRIES, FIRST_S, LAST_S = 60, 0.05, 2.0
LOOK_S = 0.05
ADVISORY_LOCK = 0x6272656B  # one migration at a time per PostgreSQL database


def run() -> None:
    url = context.config.attributes.get("url") or os.environ.get("BREAKEVEN_LEDGER_URL")
    if not url:
        raise SystemExit("set BREAKEVEN_LEDGER_URL to the ledger's database")
    engine = make_engine(url)
    try:
        if engine.dialect.name == "postgresql":
            _on_postgresql(engine)
        else:
            with engine.begin() as connection:
                _run_on(connection)
    finally:
        engine.dispose()


def _on_postgresql(engine: Engine) -> None:
    """Run migrations on PostgreSQL, with retries.

    The advisory lock is polled instead of awaited in a statement, because a concurrent index build
    would wait for a waiting statement.
    """
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as alone:
        mine = text(f"SELECT pg_try_advisory_lock({ADVISORY_LOCK})")
        while not alone.execute(mine).scalar_one():
            time.sleep(LOOK_S)
        wait_s = FIRST_S
        for last in [False] * (TRIES - 1) + [True]:
            try:
                with engine.connect() as connection:
                    connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT_MS}ms'"))
                    connection.commit()
                    _run_on(connection)
                    connection.commit()
            except OperationalError as error:
                if last or getattr(error.orig, "sqlstate", None) not in _IN_THE_WAY:
                    raise
                time.sleep(wait_s)
                wait_s = min(2 * wait_s, LAST_S)
            else:
                return


_IN_THE_WAY = {"55P03", "40P01"}  # lock not available in time, deadlock


def _run_on(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=state_conditions(orm.LedgerBase.metadata),
        render_as_batch=connection.dialect.name == "sqlite",
        transactional_ddl=True,
        transaction_per_migration=connection.dialect.name == "postgresql",
    )
    if connection.dialect.name == "sqlite":
        context.run_migrations()
        return
    with context.begin_transaction():
        context.run_migrations()


run()
