"""Migrations beside running writers: nobody queues behind them; the version before goes on."""

import ast
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, MetaData, Table, insert, inspect, select, text
from sqlalchemy.exc import OperationalError

from deploy import warmstart
from ledger.database import make_engine, migrate
from ledger.orm import tables as orm
from ledger.seals.compact import PostingCompactor
from ledger.seals.retire import AttemptRetirer
from ledger.sums.rollups import Rollups
from ledger.sums.samplehours import pack_hours
from ledger.verify.checks import verify

VERSIONS = Path(__file__).resolve().parents[2] / "migrations" / "versions"
BEFORE = "0015"
FIRST_CHECKED = "0016"  # older ones ran when tables were small
IN_THE_WAY = {
    "alter_column", "rename_table", "execute", "batch_alter_table", "create_foreign_key",
    "create_check_constraint", "create_unique_constraint", "drop_column", "drop_table",
}  # fmt: skip


@pytest.fixture
def before(postgres_url: str, request) -> Iterator[Engine]:
    """A ledger as the version before left it."""
    migrate(postgres_url, getattr(request, "param", BEFORE))
    engine = make_engine(postgres_url)
    yield engine
    engine.dispose()


@pytest.fixture
def row(opened) -> dict:
    """An attempt as the version before inserts it: it knows no other columns."""
    names = [name for name in orm.AttemptRow.__table__.columns.keys() if name != "seq"]  # noqa: SIM118  (not a dict)
    record = opened(1)
    return {name: getattr(record, name, None) for name in names} | {
        "tags": None, "journal": "j", "holds": None,
    }  # fmt: skip


def old_writer(engine: Engine) -> Table:
    """Its own idea of the table: taken before the migration."""
    return Table("attempts", MetaData(), autoload_with=engine)


def add(engine: Engine, table: Table, row: dict, number: int) -> None:
    """As a writer who queues for no longer than a migration may wait."""
    values = {name: value for name, value in row.items() if name in table.columns}
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '100ms'"))
        connection.execute(
            insert(table), [values | {"attempt_id": f"n{number}.1", "request_id": f"n{number}"}]
        )


@contextmanager
def beside(work) -> Iterator[threading.Thread]:
    """Runs in a thread that must have ended well when the block is left."""
    faults: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            faults.append(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(timeout=60)
    assert not thread.is_alive()
    assert faults == []


def waits(engine: Engine, statement: str) -> bool:
    query = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock' AND query LIKE :like"
    )
    with engine.connect() as connection:
        return bool(connection.execute(query, {"like": f"{statement}%"}).scalar_one())


@pytest.mark.parametrize(
    ("before", "column", "left"),
    [
        (BEFORE, "flag", "ix_attempts_flag_opened_us"),
        ("0039", "request_id", "ix_attempts_request_id"),
    ],
    indirect=["before"],
)
def test_writers_go_on_while_a_migration_waits_for_one_of_them(before, row, column, left) -> None:
    table, url = old_writer(before), before.url.render_as_string(hide_password=False)
    with before.begin() as connection:  # what an interrupted run left
        connection.execute(text(f"CREATE INDEX {left} ON attempts ({column})"))
    slow = before.connect()
    slow.execute(text("LOCK TABLE attempts IN ROW EXCLUSIVE MODE"))
    slow.execute(text("SELECT pg_current_xact_id()"))
    number = 0
    with beside(lambda: migrate(url)) as migration:
        while not waits(before, "%INDEX CONCURRENTLY"):
            number += 1
            add(before, table, row, number)
        for _ in range(5):
            number += 1
            add(before, table, row, number)
        assert migration.is_alive()
        slow.rollback()
    slow.close()
    with before.connect() as connection:
        invalid = text("SELECT count(*) FROM pg_index WHERE NOT indisvalid")
        assert connection.execute(invalid).scalar_one() == 0
        assert connection.execute(text("SELECT count(*) FROM attempts")).scalar_one() == number


def test_an_index_made_the_plain_way_stops_them(before, row) -> None:
    """The control: what the migrations would do without `concurrently`."""
    table = old_writer(before)
    slow = before.connect()
    slow.execute(text("LOCK TABLE attempts IN ROW EXCLUSIVE MODE"))

    def plainly() -> None:
        with before.begin() as connection:
            connection.execute(text("CREATE INDEX plain ON attempts (pool)"))

    with beside(plainly):
        while not waits(before, "CREATE INDEX plain"):
            pass
        with pytest.raises(OperationalError, match="lock timeout"):
            add(before, table, row, 1)
        slow.rollback()
    slow.close()


def test_two_who_migrate_at_once_do_not_wait_for_each_other(before) -> None:
    url = before.url.render_as_string(hide_password=False)
    script = f"from ledger.database import migrate; migrate({url!r})"
    both = [warmstart.programs().start([], output=2, program=script) for _ in range(2)]
    assert [side.wait(timeout=60) for side in both] == [0, 0]
    with before.connect() as connection:
        assert connection.execute(select(orm.RollupPositionRow.seq)).all() == []


def test_the_version_before_goes_on_writing_and_is_added_up(before, row, seal_all) -> None:
    table = old_writer(before)
    migrate(before.url.render_as_string(hide_password=False))
    done = {"settled_us": 5, "status": "finished", "basis": "reported", "cost_pusd": 1}
    for number in range(3):
        add(before, table, row | done, number)
    seal_all(before)
    assert Rollups(before).follow() == 3
    with before.connect() as connection:
        assert connection.execute(select(orm.RollupDayRow.attempts)).scalar_one() == 3


MADE_BESIDE = "0025"
MADE = (
    (MADE_BESIDE, "0039"),
    ("0040", "0041"),
    ("0042", "0044"),
    ("0048", "0050"),
    ("0052", "0053"),
    ("0055", "0056"),
    ("0057", "0058"),
    ("0059", "0064"),
    ("0065", "0066"),
)  # each between makes tables of its own


@pytest.mark.parametrize(("since", "until"), MADE)
def test_tables_are_made_while_every_other_is_written(postgres_url, since, until) -> None:
    """None of these migrations asks for a lock that a running writer would hold up."""
    migrate(postgres_url, since)
    engine = make_engine(postgres_url)
    names = ", ".join(sorted(set(inspect(engine).get_table_names()) - {"alembic_version"}))
    with engine.begin() as writers:
        writers.execute(text(f"LOCK TABLE {names} IN ROW EXCLUSIVE MODE"))
        writers.execute(text("SELECT pg_current_xact_id()"))
        with beside(lambda: migrate(postgres_url, until)) as migration:
            migration.join(timeout=60)
            assert not migration.is_alive(), "it waits for somebody who writes"
    there = set(inspect(engine).get_table_names())
    engine.dispose()
    if until == MADE[-1][1]:
        assert there >= set(orm.LedgerBase.metadata.tables)


def test_a_host_of_before_writes_and_seals_beside_rows_that_went(
    postgres_url, row, opened, settled, write, seal_all
) -> None:
    """Its attempts, samples and budgets, by its own idea of the tables, are of the books."""
    migrate(postgres_url, MADE_BESIDE)
    engine = make_engine(postgres_url)
    names = ("attempts", "engine_samples", "budgets")
    old = {name: Table(name, MetaData(), autoload_with=engine) for name in names}
    migrate(postgres_url)
    own = {"holds": (), "backend": "own"}
    write(engine, *(item for n in (1, 2, 3) for item in (opened(n, **own), settled(n))))
    seal_all(engine)
    while Rollups(engine).follow():
        pass
    for of_rows in (AttemptRetirer(engine), PostingCompactor(engine, rows_at_once=1)):
        while not of_rows.step(before_us=2**62, at_us=1).waits_for:
            pass
    add(engine, old["attempts"], row, 7)
    sample = {"at_us": 5, "pool": "p", "engine": "p/0", "health": "healthy", "simulated": False}
    budget = {"id": "b", "scope": "team:a", "period": "day", "hard": False, "limit_pusd": 1}
    with engine.begin() as connection:
        connection.execute(insert(old["engine_samples"]), [sample])
        connection.execute(insert(old["budgets"]), [budget | {"created_us": 0, "timezone": "UTC"}])
    assert pack_hours(engine, at_us=2 * 3_600_000_000) == 1
    seal_all(engine)
    with engine.connect() as connection:
        gone = select(orm.PostingCompactionRow.postings)
        assert sum(connection.execute(gone).scalars()) > 0
        found = {finding.check for finding in verify(connection).findings}
    engine.dispose()
    # Its row is open and of no journal here; all chains, sums and balances hold.
    assert found <= {"holds_end"}


def faults(source: str) -> list[str]:
    """What an upgrade does that would stop writers, or that the version before cannot live with."""
    tree = ast.parse(source)
    upgrades = [
        named
        for named in tree.body
        if isinstance(named, ast.FunctionDef) and named.name != "downgrade"
    ]
    made = set()
    found = []
    calls = [node for up in upgrades for node in ast.walk(up) if isinstance(node, ast.Call)]
    for call in calls:
        if ast.unparse(call.func) == "op.create_table" and isinstance(call.args[0], ast.Constant):
            made.add(call.args[0].value)
    for call in calls:
        name, told = ast.unparse(call.func), ast.unparse(call)
        if not name.startswith("op."):
            continue
        table = call.args[1] if len(call.args) > 1 else None
        new = isinstance(table, ast.Constant) and table.value in made
        if name == "op.create_index" and not new:
            if "sqlite_where" not in told and "postgresql_concurrently=True" not in told:
                found.append(f"locks out writers: {told}")
        elif name == "op.add_column":
            if "nullable=True" not in told and "server_default" not in told:
                found.append(f"the version before leaves it out: {told}")
        elif name.removeprefix("op.") in IN_THE_WAY and "SET lock_timeout" not in told:
            found.append(f"not beside running writers: {told}")
    return found


def test_no_migration_is_in_the_way() -> None:
    checked = [path for path in sorted(VERSIONS.glob("*.py")) if path.name[:4] >= FIRST_CHECKED]
    assert checked
    assert [(path.name, fault) for path in checked for fault in faults(path.read_text())] == []


@pytest.mark.parametrize(
    "line",
    [
        'op.create_index("x", "attempts", ["pool"])',
        'op.add_column("attempts", sa.Column("x", sa.String(), nullable=False))',
        'op.alter_column("attempts", "x", type_=sa.String())',
        'op.execute("UPDATE attempts SET x = 1")',
        'op.drop_column("attempts", "pool")',
    ],
)
def test_what_would_be_in_the_way_is_found(line: str) -> None:
    assert faults(f"def upgrade():\n    {line}\n")
    assert not faults(f"def downgrade():\n    {line}\n")
