"""Whoever commits is seen with the next look, and nothing else is taken for a commit."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from sqlalchemy import insert, select, update

from ledger import commit_watch
from ledger.commit_watch import CommitWatch, work_after_commit
from ledger.database import make_engine, read_value, sqlite_url, write_alone
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


def age(engine) -> None:
    """Make the last write a while old; a commit in between would have another time all the same."""
    for path in (engine.url.database, f"{engine.url.database}-wal"):
        if os.path.exists(path):  # noqa: PTH110  (a name)
            os.utime(path, ns=(1, 1))


def test_stillness_is_sure_and_ends_with_a_commit(engine, database_url) -> None:
    keeper = engine.connect()  # the log stays while somebody has the database open
    watch = CommitWatch(engine)
    assert not watch.is_still()  # nothing was read
    if engine.dialect.name != "sqlite":
        watch.version()
        assert not watch.is_still()
        keeper.close()
        return
    write_alone(engine, insert(orm.MetaRow).values(name="number", value=1))
    watch.version()
    assert not watch.is_still()  # a write in this moment could have the same time
    age(engine)
    watch.version()
    assert watch.is_still()
    read_value(engine, select(orm.MetaRow.value))
    assert watch.is_still()
    for _ in range(3):
        write_alone(engine, RAISE)
        assert not watch.is_still()
        age(engine)
        watch.version()
        assert watch.is_still()
    subprocess.run([sys.executable, "-c", OTHER, engine.url.database], check=True)
    assert not watch.is_still()
    watch.close()
    assert not watch.is_still()
    keeper.close()


async def test_work_is_done_again_after_a_commit_or_a_failure(engine) -> None:
    done: list[str] = []
    keeper = engine.connect()
    write_alone(engine, insert(orm.MetaRow).values(name="number", value=1))
    watch = CommitWatch(engine)

    async def work() -> None:
        done.append("work")
        if len(done) == 1:
            raise OSError("the first time")

    age(engine) if engine.dialect.name == "sqlite" else None
    with pytest.raises(OSError, match="first"):
        await work_after_commit(watch, work)
    for _ in range(4):
        await work_after_commit(watch, work)
    assert len(done) == (2 if engine.dialect.name == "sqlite" else 5)
    write_alone(engine, RAISE)
    await work_after_commit(watch, work)
    assert len(done) == (3 if engine.dialect.name == "sqlite" else 6)
    watch.close()
    keeper.close()


def test_a_connection_is_not_closed_under_a_thread_that_asks(tmp_path, monkeypatch) -> None:
    """A cancelled caller leaves its thread behind; SQLite ended the process with a fault there."""
    engine = make_engine(sqlite_url(tmp_path / "books.db"))
    asking, may_answer, order = threading.Event(), threading.Event(), []

    class SlowConnection:
        def execute(self, _statement):
            asking.set()
            may_answer.wait(10)
            order.append("answered")
            return SimpleNamespace(fetchone=lambda: (7,), close=lambda: None)

        def close(self) -> None:
            order.append("closed")

    monkeypatch.setattr(commit_watch, "_connect", lambda _path: SlowConnection())
    watch = commit_watch.CommitWatch(engine)
    with ThreadPoolExecutor(2) as pool:
        version = pool.submit(watch.version)
        assert asking.wait(10)
        closed = pool.submit(watch.close)
        with pytest.raises(TimeoutError):
            closed.result(0.05)
        may_answer.set()
        assert (version.result(10), closed.result(10)) == (7, None)
    assert order == ["answered", "closed"]
