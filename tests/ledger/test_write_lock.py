"""Who waits for SQLite's write lock gets it before who has just had it."""

import contextlib
import threading
from pathlib import Path

import pytest
from sqlalchemy import select, text

from ledger import database
from ledger.database import make_engine, migrate
from ledger.locks import is_locked
from ledger.orm import tables as orm
from ledger.write_lock import acquire_turn, turns_of

ROUNDS = 20


def overtaken(url: str, waits) -> int:
    """How often somebody who commits and begins again at once comes before one who waited."""
    busy, other, count = make_engine(url, keep_open=True), make_engine(url), 0
    for number in range(ROUNDS):
        asks = threading.Event()

        def wait(number: int = number, asks: threading.Event = asks) -> None:
            asks.set()
            with other.begin() as connection:
                connection.execute(
                    orm.MetaRow.__table__.insert().values(name=f"n{number}", value=1)
                )

        with busy.begin():
            thread = threading.Thread(target=wait)
            thread.start()
            asks.wait()
            waits()
        with busy.begin() as connection:
            there = select(orm.MetaRow.value).where(orm.MetaRow.name == f"n{number}")
            count += connection.execute(there).scalar() is None
        thread.join()
    busy.dispose()
    other.dispose()
    return count


def test_who_waits_comes_before_who_had_it(sqlite_url) -> None:
    migrate(sqlite_url)
    file = turns_of(Path(sqlite_url.removeprefix("sqlite:///")))
    pause = threading.Event()

    def waits() -> None:
        while not is_locked(file):
            pause.wait(0.001)

    assert overtaken(sqlite_url, waits) == 0


def test_without_turns_it_is_overtaken(sqlite_url, monkeypatch) -> None:
    """The control: SQLite's own waiting."""
    migrate(sqlite_url)
    monkeypatch.setattr(database, "acquire_turn", lambda *_: contextlib.nullcontext())
    pause = threading.Event()
    assert overtaken(sqlite_url, lambda: pause.wait(0.02)) > 0


def test_who_stands_still_holds_nobody_up_for_long(tmp_path) -> None:
    path = tmp_path / "x-turn"
    with acquire_turn(path, 0) as first, acquire_turn(path, 0.01) as second:
        assert (first, second) == (True, False)
    with acquire_turn(path, 0) as again:
        assert again


def test_where_no_file_can_be_made_there_is_no_turn(tmp_path) -> None:
    with acquire_turn(tmp_path / "missing" / "x-turn", 0) as mine:
        assert not mine


@pytest.mark.parametrize("reads", [True, False])
def test_only_who_writes_takes_a_turn(sqlite_url, reads) -> None:
    migrate(sqlite_url)
    engine = make_engine(sqlite_url)
    file = turns_of(Path(sqlite_url.removeprefix("sqlite:///")))
    file.unlink()
    with database.reading(engine) if reads else engine.begin() as connection:
        connection.execute(text("SELECT 1"))
    engine.dispose()
    assert file.exists() is not reads


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_in_memory_has_one_writer_and_no_file(url, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.execute(text("SELECT 1"))
    engine.dispose()
    assert list(tmp_path.iterdir()) == []
