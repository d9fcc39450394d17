"""Runs migrations on one connection, in one transaction, one process at a time.

The URL comes from `ledger.database.migrate` or, for `alembic` on the command line, from the
environment variable `BREAKEVEN_LEDGER_URL`. Waiting for locks is bounded, so that a migration
gives up rather than holds up a running gateway.
"""

import os

from alembic import context
from sqlalchemy import Connection, text

from ledger import orm
from ledger.database import make_engine

LOCK_TIMEOUT_S = 10
ADVISORY_LOCK = 0x6272656B  # one migration at a time per PostgreSQL database


def run() -> None:
    url = context.config.attributes.get("url") or os.environ.get("BREAKEVEN_LEDGER_URL")
    if not url:
        raise SystemExit("set BREAKEVEN_LEDGER_URL to the ledger's database")
    engine = make_engine(url)
    try:
        with engine.begin() as connection:
            _run_on(connection)
    finally:
        engine.dispose()


def _run_on(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"))
        connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'"))
    context.configure(
        connection=connection,
        target_metadata=orm.Base.metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        transactional_ddl=True,
    )
    context.run_migrations()


run()
