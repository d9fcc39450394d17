"""Whoever commits is seen with the next look, and nothing else is taken for a commit."""

import subprocess
import sys

from sqlalchemy import insert, select, update

from ledger.commit_watch import CommitWatch
from ledger.database import make_engine, read_value, write_alone
from ledger.orm import tables as orm

RAISE = update(orm.MetaRow).values(value=orm.MetaRow.value + 1)
OTHER = (
    "import sqlite3, sys; books = sqlite3.connect(sys.argv[1])\n"
    "books.execute('UPDATE meta SET value = value + 1'); books.commit()"
)


def test_each_commit_is_another_version_and_a_look_is_none(engine, database_url) -> None:
    write_alone(engine, insert(orm.MetaRow).values(name="number", value=1))
    watch = CommitWatch(engine)
    first = watch.version()
    if engine.dialect.name != "sqlite":
        assert first is None  # never known: always read
        return
    read_value(engine, select(orm.MetaRow.value))
    assert watch.version() == first is not None
    write_alone(engine, RAISE)
    second = watch.version()
    other = make_engine(database_url)
    write_alone(other, RAISE)
    other.dispose()
    third = watch.version()
    subprocess.run([sys.executable, "-c", OTHER, engine.url.database], check=True)
    assert len({first, second, third, watch.version()}) == 4
    with engine.begin() as connection:
        connection.execute(RAISE)
        fourth = watch.version()
        connection.rollback()
    assert watch.version() == fourth
    watch.close()
    watch.close()


def test_a_database_that_cannot_be_opened_has_no_version(tmp_path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/none/ledger.db")
    watch = CommitWatch(engine)
    assert watch.version() is None
    watch.close()
