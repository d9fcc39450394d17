"""Schema up, down and up again, and the engines' promises, on both databases."""

import json
import sqlite3
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.util import CommandError
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import delete, event, func, insert, inspect, select, text, update
from sqlalchemy.exc import DBAPIError

from ledger.database import (
    KEPT,
    DatabaseError,
    NotDurable,
    check_durable,
    database_us,
    is_momentary,
    is_unavailable,
    limit_time,
    make_engine,
    migrate,
    open_readonly,
    read_json,
    read_row,
    read_rows,
    read_value,
    reading,
    schema_of,
    snapshot,
    sqlite_url,
    write_alone,
)
from ledger.orm import tables as orm
from ledger.orm.partial_index import state_conditions

ROOT = Path(__file__).resolve().parents[2]


def tables(url: str) -> set[str]:
    engine = make_engine(url)
    try:
        return set(inspect(engine).get_table_names()) - {"alembic_version"}
    finally:
        engine.dispose()


def test_migrations_go_up_down_and_up(database_url, downgrade):
    migrate(database_url)
    assert tables(database_url) == set(orm.LedgerBase.metadata.tables)
    downgrade("base")
    assert tables(database_url) == set()
    migrate(database_url)
    migrate(database_url)  # a second run changes nothing
    assert tables(database_url) == set(orm.LedgerBase.metadata.tables)


def test_one_statement_alone(database_url):
    migrate(database_url)
    engine = make_engine(database_url)
    write_alone(engine, insert(orm.OrganisationRow).values(id="a", name="A", created_us=1))
    assert write_alone(engine, update(orm.OrganisationRow).values(name="B")) == 1
    query = select(orm.OrganisationRow.id)
    assert read_rows(engine, query) == [("a",)]
    assert (read_row(engine, query), read_value(engine, query)) == (("a",), "a")
    nobody = query.where(orm.OrganisationRow.id == "b")
    assert (read_row(engine, nobody), read_value(engine, nobody)) == (None, None)
    assert write_alone(engine, delete(orm.OrganisationRow)) == 1
    engine.dispose()


def test_a_later_versions_schema_is_left_as_it_is(database_url):
    """A host of the version before may start again while the others are replaced."""
    migrate(database_url)
    engine = make_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    migrate(database_url)
    with engine.begin() as connection:
        assert connection.execute(text("SELECT * FROM alembic_version")).scalar_one() == "9999"
        connection.execute(text("UPDATE alembic_version SET version_num = 'elsewhere'"))
    engine.dispose()
    with pytest.raises(CommandError, match="elsewhere"):  # it is nobody's we know
        migrate(database_url)


def test_the_schema_equals_the_table_definitions(database_url):
    migrate(database_url)
    engine = make_engine(database_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        drift = compare_metadata(context, state_conditions(orm.LedgerBase.metadata))
    engine.dispose()
    assert drift == []


def test_readonly_refuses_every_write_and_still_reads(database_url):
    migrate(database_url)
    writer = make_engine(database_url)
    with writer.begin() as connection:
        connection.execute(orm.MetaRow.__table__.insert().values(name="key_generation", value=7))
    reader = open_readonly(database_url)
    with reader.connect() as connection:
        assert connection.execute(select(orm.MetaRow.value)).scalar_one() == 7
    for statement in ("UPDATE meta SET value = 8", "DROP TABLE meta", "CREATE TABLE x (i int)"):
        with reader.connect() as connection, pytest.raises(DBAPIError):
            connection.execute(text(statement))
    reader.dispose()
    writer.dispose()


def test_sqlite_is_opened_durable(sqlite_url):
    engine = make_engine(sqlite_url)
    check_durable(engine)
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA foreign_keys")).scalar_one() == 1
        assert connection.execute(text("PRAGMA busy_timeout")).scalar_one() == 10_000
    engine.dispose()


def test_a_database_that_may_lose_commits_is_refused(postgres_url):
    # The test server runs with fsync off: the very thing that billing must not stand on.
    engine = make_engine(postgres_url)
    with pytest.raises(NotDurable, match="fsync=off, full_page_writes=off, synchronous_commit=off"):
        check_durable(engine)
    engine.dispose()


def test_other_databases_are_refused():
    with pytest.raises(DatabaseError, match="SQLite or PostgreSQL"):
        make_engine("oracle://somewhere")


@pytest.mark.parametrize("url", ["hunter2", "postgresql://me:pa@ss:hunter2@db/x"])
def test_an_address_that_is_none_is_said_and_not_quoted(url: str) -> None:
    for opened in (make_engine, open_readonly, migrate):
        with pytest.raises(DatabaseError, match="address is invalid") as raised:
            opened(url)
        assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_away_is_told_from_wrong(tmp_path, database_url):
    migrate(database_url)
    engine = make_engine(database_url)
    with engine.connect() as connection, pytest.raises(DBAPIError) as wrong:
        connection.execute(text("INSERT INTO meta (name, value) VALUES ('a', NULL)"))
    assert not is_unavailable(wrong.value)
    engine.dispose()
    gone = make_engine(sqlite_url(tmp_path / "missing" / "ledger.db"))
    with pytest.raises(DBAPIError) as away, gone.connect() as connection:
        connection.execute(text("SELECT 1"))
    assert is_unavailable(away.value)
    gone.dispose()


@pytest.mark.parametrize(
    ("state", "momentary"), [("40P01", True), ("40001", True), ("23514", False), ("57014", False)]
)
def test_others_in_the_way_are_told_from_wrong_and_from_away(postgres_url, state, momentary):
    engine = make_engine(postgres_url)
    raising = f"DO $$ BEGIN RAISE EXCEPTION 'it' USING ERRCODE = '{state}'; END $$"
    with engine.connect() as connection, pytest.raises(DBAPIError) as found:
        connection.execute(text(raising))
    assert is_momentary(found.value) is momentary
    with pytest.raises(DBAPIError) as cut, engine.connect() as connection:
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert not is_momentary(cut.value)
    engine.dispose()


@pytest.mark.parametrize("keep_open", [True, False])
def test_reading_refuses_every_write_and_the_next_transaction_may_write(database_url, keep_open):
    migrate(database_url)
    engine = make_engine(database_url, keep_open=keep_open)
    for value in (7, 8):
        with reading(engine) as connection, pytest.raises(DBAPIError):
            connection.execute(text("DELETE FROM meta"))
        with engine.begin() as connection:
            connection.execute(text("DELETE FROM meta"))
            connection.execute(orm.MetaRow.__table__.insert().values(name="a", value=value))
        with reading(engine) as connection:
            assert connection.execute(select(orm.MetaRow.value)).scalar_one() == value
    engine.dispose()


def test_readers_of_sqlite_and_its_writer_do_not_wait_for_one_another(sqlite_url):
    """Each sees one state of the books from its first look to its end."""
    migrate(sqlite_url)
    engine = make_engine(sqlite_url)
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), timeout=0, isolation_level=None)
    query = select(func.count()).select_from(orm.MetaRow)
    with reading(engine) as early:
        assert early.execute(query).scalar_one() == 0
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO meta VALUES ('a', 1)")
        with reading(engine) as late:  # while somebody writes
            assert late.execute(query).scalar_one() == 0
        other.execute("COMMIT")
        assert early.execute(query).scalar_one() == 0
    with reading(engine) as after:
        assert after.execute(query).scalar_one() == 1
    other.close()
    engine.dispose()


def test_only_who_migrates_imports_alembic(sqlite_url):
    program = (
        "import sys; import gateway.worker.__main__, ledger.writer, gateway.host.telemetry\n"
        "before = 'alembic' in sys.modules\n"
        "from ledger.database import migrate\n"
        f"migrate({sqlite_url!r})\n"
        "print(before, 'alembic' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["False", "True"]


def test_a_schema_that_is_up_to_date_is_asked_for_its_stamp_alone(database_url):
    """The control: of a schema before it Alembic is asked."""
    versions = (ROOT / "migrations" / "versions").glob("[0-9]*.py")
    *_, before, newest = sorted(path.name[:4] for path in versions)
    migrate(database_url, before)
    program = f"import sys; from ledger.database import migrate; migrate({database_url!r})\n"
    words = [sys.executable, "-c", program + "print('alembic' in sys.modules)"]
    for imported in ("True", "False"):
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == imported
        assert schema_of(database_url) == newest


def test_writers_of_sqlite_take_turns(sqlite_url):
    migrate(sqlite_url)
    first = make_engine(sqlite_url)
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), timeout=0)
    with first.begin() as connection:
        connection.execute(select(orm.MetaRow))  # reading first already takes the write lock
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("INSERT INTO meta VALUES ('a', 1)")
    other.close()
    first.dispose()


@pytest.mark.parametrize("keep_open", [True, False])
def test_a_process_that_writes_much_keeps_its_connection(sqlite_url, keep_open):
    engine, opens = make_engine(sqlite_url, keep_open=keep_open), []
    event.listen(engine, "connect", lambda *_: opens.append(1))
    for number in range(3):
        with engine.begin() as connection:
            connection.execute(text(f"CREATE TABLE t{number} (a)"))
    assert len(opens) == (1 if keep_open else 3)
    engine.dispose()


@pytest.mark.parametrize(("keep_open", "kib"), [(True, 4_096), (False, 65_536)])
def test_what_is_kept_open_keeps_a_bounded_cache(sqlite_url, keep_open, kib):
    engine = make_engine(sqlite_url, keep_open=keep_open)
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA cache_size")).scalar_one() == -kib
    engine.dispose()


@pytest.mark.parametrize("lifo", [True, False])
def test_the_connection_used_last_is_used_next(sqlite_url, lifo, monkeypatch):
    """Control: in turns, each would find its cache emptied by what the others wrote."""
    monkeypatch.setitem(KEPT, "pool_use_lifo", lifo)
    engine = make_engine(sqlite_url, keep_open=True)
    with engine.connect(), engine.connect():
        pass  # now there are two
    used = []
    for _ in range(4):
        with engine.connect() as connection:
            used.append(id(connection.connection.driver_connection))
    assert len(set(used)) == (1 if lifo else 2)
    engine.dispose()


def test_a_snapshot_sees_one_state_of_the_books(database_url):
    """Negative control: an ordinary read-only connection sees what is written meanwhile."""
    migrate(database_url)
    writer, reader = make_engine(database_url), open_readonly(database_url)
    count = select(func.count()).select_from(orm.MetaRow)

    def seen(connection) -> list[int]:
        found = []
        for name in "ab":
            found.append(connection.execute(count).scalar_one())
            with writer.begin() as other:
                row = {"name": f"{name}{connection.info.get('turn', '')}", "value": 1}
                other.execute(orm.MetaRow.__table__.insert().values(**row))
        return found

    with snapshot(reader) as connection:
        connection.info["turn"] = "1"
        assert seen(connection) == [0, 0]
    with reader.connect() as connection:
        connection.info["turn"] = "2"
        connection.execution_options(isolation_level="AUTOCOMMIT")
        assert seen(connection) == [2, 3]
    writer.dispose()
    reader.dispose()


def test_what_takes_too_long_is_ended(database_url):
    migrate(database_url)
    reader = open_readonly(database_url)
    slow = text(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100000000)"
        " SELECT count(*) FROM n"
    )
    with snapshot(reader) as connection:
        limit_time(connection, 0.05, iter([False] * 3 + [True] * 99).__next__)
        with pytest.raises(DBAPIError) as ended:
            connection.execute(slow)
    assert is_unavailable(ended.value)
    reader.dispose()


def test_the_databases_own_clock_goes_forward(database_url: str) -> None:
    engine = make_engine(database_url)
    with engine.begin() as connection:
        first, second = database_us(connection), database_us(connection)
    engine.dispose()
    assert 1_700_000_000_000_000 < first <= second


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
))  # fmt: skip
@example({"pusd": 10**40, "lone": "\ud800", "most": 1e308, "zero": -0.0})
@example([float("inf"), -1.5e-320])
def test_a_column_of_json_is_read_as_it_was_written(value):
    """As SQLAlchemy writes it, on both databases."""
    text = json.dumps(value)
    assert json.dumps(read_json(text)) == text
