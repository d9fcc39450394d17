"""The PostgreSQL role for the dashboard: it reads every page's rows, and no write of any kind."""

import re
from pathlib import Path

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError

from ledger.database import make_engine, migrate, open_readonly, snapshot
from ledger.economics.cost import TokenBasis
from ledger.orm.tables import LedgerBase
from ledger.queries import reads as queries
from ledger.queries.reads import DAY_US, Scope
from ledger.reports.survey import survey
from ledger.seals.audit_log import changes
from ledger.verify.checks import verify

FILE = Path(__file__).resolve().parents[2] / "deploy" / "postgres-reader.sql"
WRITES = (
    "DELETE FROM attempts", "UPDATE gpu_contracts SET pusd_per_hour = 0", "TRUNCATE postings",
    "INSERT INTO meta (name, value) VALUES ('x', 1)", "DROP TABLE keys", "CREATE TABLE x (y int)",
    "ALTER TABLE keys ADD COLUMN x int", "SELECT nextval('attempts_seq_seq')",
)  # fmt: skip
# What people asked and were answered. A new table is closed until the file names it.
WITHHELD = {
    "files", "file_chunks", "batch_lines", "outgoing_lines", "submissions", "kept_answers",
    "stored_objects",  # but for their teams and sizes, which `ledger verify` adds up
    "event_cursors", "report_turns",  # how far something was sent: no page shows it
}  # fmt: skip


@pytest.fixture
def reader_url(postgres_url: str):
    """As `psql` would run the file, for a role that no other test has."""
    migrate(postgres_url)
    engine = make_engine(postgres_url)
    name = f"reader_{make_url(postgres_url).database}"
    script = re.sub(r"--.*", "", FILE.read_text(encoding="utf-8"))
    script = script.replace(":reader", f'"{name}"').replace(":password", "'a password'")
    with engine.begin() as connection:
        for statement in filter(str.strip, script.split(";")):
            connection.execute(text(statement))
    url = make_url(postgres_url).set(username=name, password="a password")
    yield url.render_as_string(hide_password=False)
    with engine.begin() as connection:
        connection.execute(text(f'DROP OWNED BY "{name}"'))
        connection.execute(text(f'DROP ROLE "{name}"'))
    engine.dispose()


@pytest.mark.parametrize("statement", WRITES)
def test_no_write_even_where_it_says_that_it_writes(reader_url: str, statement: str) -> None:
    """A session may switch off `default_transaction_read_only`; grants stay."""
    engine = make_engine(reader_url)
    try:
        with engine.connect() as connection:
            connection.execute(text("SET TRANSACTION READ WRITE"))
            with pytest.raises(DBAPIError) as raised:
                connection.execute(text(statement))
    finally:
        engine.dispose()
    assert re.search("permission denied|must be owner", str(raised.value))


def test_control_the_owner_writes(postgres_url: str) -> None:
    migrate(postgres_url)
    engine = make_engine(postgres_url)
    with engine.begin() as connection:
        connection.execute(text(WRITES[0]))
    engine.dispose()


def test_every_table_is_opened_by_name_or_closed(reader_url: str, postgres_url: str) -> None:
    engine = make_engine(postgres_url)
    role = make_url(reader_url).username
    query = (
        "SELECT tablename, has_table_privilege(:role, tablename::regclass, 'SELECT') "
        "FROM pg_tables WHERE schemaname = 'public'"
    )
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE of_tomorrow (y int)"))
        opened = dict(connection.execute(text(query), {"role": role}).all())
        connection.execute(text("DROP TABLE of_tomorrow"))
    engine.dispose()
    assert not opened.pop("of_tomorrow")
    assert {table for table, is_open in opened.items() if not is_open} == WITHHELD
    assert opened.keys() == {*LedgerBase.metadata.tables, "alembic_version"}


def test_an_upgrade_takes_stored_answers_from_a_role_that_may_read_new_tables(
    postgres_url: str,
) -> None:
    """The file of an earlier release gave the role every table of tomorrow."""
    migrate(postgres_url, "0051")
    engine = make_engine(postgres_url)
    name = f"earlier_{make_url(postgres_url).database}"
    with engine.begin() as connection:
        connection.execute(text(f'CREATE ROLE "{name}" LOGIN'))
        grant = f'ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO "{name}"'
        connection.execute(text(grant))
    migrate(postgres_url)
    query = text("SELECT has_table_privilege(:role, :name, 'SELECT')")
    with engine.begin() as connection:
        for table in ("stored_objects", "stored_bytes"):
            assert not connection.execute(query, {"role": name, "name": table}).scalar_one()
        connection.execute(text(f'DROP OWNED BY "{name}"'))
        connection.execute(text(f'DROP ROLE "{name}"'))
    engine.dispose()


@pytest.fixture
def opened():
    """Engines to read with; closed whatever happens."""
    made = []

    def make(url: str):
        made.append(open_readonly(url))
        return made[-1]

    yield make
    for made_value in made:
        made_value.dispose()


def test_it_reads_what_pages_show_and_no_prompts(reader_url: str, opened) -> None:
    engine = opened(reader_url)
    with snapshot(engine) as connection:
        look = survey(connection, Scope(0, DAY_US), bucket_us=DAY_US, basis=TokenBasis.OUTPUT)
        assert look.cells == ()
        assert queries.engines_now(connection) == []
        assert changes(connection, 5) == []
        assert verify(connection).is_clean
    for table in sorted(WITHHELD):
        with engine.connect() as connection, pytest.raises(DBAPIError, match="permission denied"):
            connection.execute(text(f"SELECT * FROM {table}"))
    with engine.connect() as connection, pytest.raises(DBAPIError, match="permission denied"):
        connection.execute(text("SELECT id FROM stored_objects"))
