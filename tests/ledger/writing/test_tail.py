"""Killed at every point where something becomes durable, the books end the same."""

import pytest
from sqlalchemy import event, select

from ledger.database import make_engine, migrate
from ledger.journals.journal import JournalWriter
from ledger.journals.reader import JournalReader
from ledger.orm import tables as orm
from ledger.writing.repository import DatabaseUnavailable, LedgerRepository
from ledger.writing.tail import FEWEST_RECORDS, JournalTailer

TABLES = (
    orm.AttemptRow,
    orm.PostingRow,
    orm.HoldRow,
    orm.BudgetWindowRow,
    orm.ComparedCostRow,
    orm.AttemptDecisionRow,
    orm.RefusalRow,
    orm.QuarantinedRecordRow,
    orm.JournalPositionRow,
)


class Crash(BaseException):
    """The process is gone."""


class Killer:
    """Counts the points at which something becomes durable, and dies at one of them."""

    def __init__(self, engine, at):
        self.engine, self.at, self.seen = engine, at, 0
        self.commit = engine.dialect.do_commit

    def __enter__(self):
        self.engine.dialect.do_commit = self.do_commit
        return self

    def __exit__(self, *_):
        self.engine.dialect.do_commit = self.commit

    def point(self):
        self.seen += 1
        if self.seen == self.at:
            raise Crash

    def do_commit(self, connection):
        self.point()
        self.commit(connection)
        self.point()

    def around(self, work):
        def wrapped(*arguments):
            self.point()
            result = work(*arguments)
            self.point()
            return result

        return wrapped


def tail_of(engine, directory, killer=None):
    reader = JournalReader(directory)
    if killer is not None:
        reader.remove = killer.around(reader.remove)
        reader.remove_applied = killer.around(reader.remove_applied)
    return JournalTailer(LedgerRepository(engine, host="h1"), reader, lambda: 77)


def drain(tail):
    for _ in range(1000):
        step = tail.step()
        if not step.moved and not step.buried:
            return
    raise AssertionError("the journals never end")


async def fill(directory, opened, settled, refused):
    """Two workers: one that ended cleanly, one that was killed with attempts open."""
    clean = JournalWriter(directory, "w0", segment_bytes=2500, new_id=lambda: "clean")
    killed = JournalWriter(directory, "w1", segment_bytes=2500, new_id=lambda: "killed")
    for number in range(12):
        clean.append(opened(number))
        clean.append(settled(number))
        killed.append(opened(100 + number))
        if number % 3:
            killed.append(settled(100 + number))
    clean.append(refused(1))
    clean.append(settled(999))  # nothing was opened under this id
    clean.close()
    killed.close()


def books(engine):
    dump = {}
    with engine.connect() as connection:
        for table in TABLES:
            columns = [column for column in table.__table__.columns if column.name != "seq"]
            rows = connection.execute(select(*columns))
            dump[table.__tablename__] = sorted(repr(tuple(row)) for row in rows)
    return dump


async def test_killed_at_every_point_the_books_are_the_same(
    database_url, tmp_path, opened, settled, refused
):
    migrate(database_url)
    engine = make_engine(database_url)
    expected, point = None, 0
    while True:
        with engine.begin() as connection:
            for table in TABLES:
                connection.execute(table.__table__.delete())
        directory = tmp_path / f"kill-{point}"
        await fill(directory, opened, settled, refused)
        finished = False
        with Killer(engine, point) as killer:
            try:
                drain(tail_of(engine, directory, killer))
                finished = True
            except Crash:
                pass
        if not finished:
            drain(tail_of(engine, directory))
        found = books(engine)
        assert JournalReader(directory).journals() == []
        if expected is None:
            expected = found
        assert found == expected, f"killed at point {point}"
        if finished and point:
            break
        point += 1
    assert point > 12  # batches, removals, losses and positions, before and after each
    assert len(expected["attempts"]) == 24
    assert len(expected["postings"]) == 48
    assert sum("'lost'" in row for row in expected["attempts"]) == 4
    assert len(expected["quarantine"]) == 1
    assert expected["journal_positions"] == []
    engine.dispose()


async def test_control_positions_apart_from_what_they_cover_lose_or_repeat(
    sqlite_url, tmp_path, opened, settled, refused, monkeypatch
):
    """Without the shared transaction a kill between the two loses records: the test can see it."""
    migrate(sqlite_url)
    engine = make_engine(sqlite_url)
    move = LedgerRepository._move

    def early(self, _connection, moves, at_us):
        with engine.begin() as other:
            move(self, other, moves, at_us)

    original = LedgerRepository.apply

    def apply(self, items, moves, *, at_us):
        early(self, None, moves, at_us)
        return original(self, items, (), at_us=at_us)

    monkeypatch.setattr(LedgerRepository, "apply", apply)
    await fill(tmp_path / "j", opened, settled, refused)
    with Killer(engine, 3) as killer, pytest.raises(Crash):
        drain(tail_of(engine, tmp_path / "j", killer))
    drain(tail_of(engine, tmp_path / "j"))
    assert len(books(engine)["attempts"]) < 24
    engine.dispose()


async def test_the_database_away_keeps_the_place(engine, tmp_path, opened, monkeypatch):
    writer = JournalWriter(tmp_path, "w0")
    writer.append(opened(1))
    tail = tail_of(engine, tmp_path)
    apply = LedgerRepository.apply

    def away(*_, **__):
        raise DatabaseUnavailable

    monkeypatch.setattr(LedgerRepository, "apply", away)
    for _ in range(3):
        with pytest.raises(DatabaseUnavailable):
            tail.step()
    assert tail.backlog_bytes() > 0
    monkeypatch.setattr(LedgerRepository, "apply", apply)
    drain(tail)
    assert len(books(engine)["attempts"]) == 1
    assert tail.backlog_bytes() == 0
    writer.close()


async def test_open_attempts_of_a_live_worker_are_left_alone(engine, tmp_path, opened):
    writer = JournalWriter(tmp_path, "w0")
    writer.append(opened(1))
    tail = tail_of(engine, tmp_path)
    drain(tail)
    with engine.connect() as connection:
        assert connection.execute(select(orm.AttemptRow.settled_us)).scalar_one() is None
    writer.close()
    drain(tail)
    with engine.connect() as connection:
        assert connection.execute(select(orm.AttemptRow.flag)).scalar_one() == "lost"


async def test_one_pass_is_one_transaction(engine, tmp_path, opened, settled):
    writers = [JournalWriter(tmp_path, f"w{number}") for number in range(4)]
    for number, writer in enumerate(writers):
        writer.append(opened(number))
        writer.append(settled(number))
    tail = tail_of(engine, tmp_path)
    tail.step()
    commits = []
    event.listen(engine, "commit", commits.append)
    for number, writer in enumerate(writers):
        writer.append(opened(10 + number))
    tail.step()
    assert len(commits) == 1
    for writer in writers:
        writer.close()


async def test_who_fails_with_many_records_at_once_goes_on_with_fewer(
    engine, tmp_path, opened, settled, refused
):
    """A database where any statement may fail: a batch of all of the backlog would for ever."""
    await fill(tmp_path, opened, settled, refused)
    wanted = tail_of(engine, tmp_path)
    repository, sizes, failed = wanted._repository, [], 0
    apply = repository.apply

    def fragile(items, moves, *, at_us):
        if len(items) > 2 * FEWEST_RECORDS:
            raise DatabaseUnavailable
        sizes.append(len(items))
        return apply(items, moves, at_us=at_us)

    repository.apply = fragile
    for _ in range(200):
        try:
            step = wanted.step()
        except DatabaseUnavailable:
            failed += 1
        else:
            if not step.more and not step.moved and not step.buried:
                break
    else:
        raise AssertionError("the journals never end")
    assert failed
    assert len(sizes) > 5
    repository.apply = apply
    fresh = tail_of(engine, tmp_path)
    assert not fresh.step().moved
    with engine.connect() as connection:
        numbers = connection.execute(select(orm.AttemptRow.settled_us.is_not(None))).scalars().all()
    assert len(numbers) == 24
    assert all(numbers)


async def test_all_records_are_taken_again_once_nothing_fails(
    engine, tmp_path, opened, settled, refused
):
    await fill(tmp_path, opened, settled, refused)
    tail = tail_of(engine, tmp_path)
    tail._records = FEWEST_RECORDS
    sizes, apply = [], tail._repository.apply

    def noted(items, moves, *, at_us):
        sizes.append(len(items))
        return apply(items, moves, at_us=at_us)

    tail._repository.apply = noted
    drain(tail)
    assert sizes[0] == FEWEST_RECORDS
    assert sizes[1] == 2 * FEWEST_RECORDS
    assert tail._records > 2 * FEWEST_RECORDS
