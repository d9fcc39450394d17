"""A database that was another test's: empty, with its numbers at their start, of the same shape."""

from collections.abc import Iterator

import psycopg
import pytest
from lent_database import LentDatabase
from sqlalchemy import Engine, func, insert, select, text
from sqlalchemy.exc import OperationalError

from ledger.database import make_engine
from ledger.orm import tables as orm


@pytest.fixture
def lent(postgres_server, migrated_postgres: str) -> Iterator[LentDatabase]:
    """One of this test's own."""
    found = LentDatabase(postgres_server, migrated_postgres)
    yield found
    found.end()


@pytest.fixture
def next_engine(lent: LentDatabase) -> Iterator:
    """`next_engine()`: the next test's; the one before it is taken back."""
    made: list[Engine] = []

    def make() -> Engine:
        if made:
            lent.take_back()
        made.append(make_engine(lent.lend()))
        return made[-1]

    yield make
    for engine in made:
        engine.dispose()


def kept_database(engine: Engine) -> int:
    """By its number, which a name that changes leaves alone."""
    with engine.connect() as connection:
        found = "SELECT oid FROM pg_database WHERE datname = current_database()"
        return connection.execute(text(found)).scalar_one()


def enter(engine: Engine) -> None:
    row = {"version": 1, "name": "a", "since_us": 0, "source": "", "price": {}, "recorded_us": 0}
    with engine.begin() as connection:
        connection.execute(insert(orm.PriceVersionRow), [row])


def test_rows_go_numbers_begin_anew_and_the_database_is_the_same(
    next_engine, write, opened, settled, refused
) -> None:
    first = next_engine()
    write(first, opened(1), settled(1), refused(2))
    enter(first)
    second = next_engine()
    with second.connect() as connection:
        for table in orm.LedgerBase.metadata.sorted_tables:
            assert connection.execute(select(func.count()).select_from(table)).scalar() == 0
    write(second, opened(5))
    with second.connect() as connection:
        assert connection.execute(select(func.min(orm.AttemptRow.seq))).scalar() == 1


def test_the_same_database_is_lent_again_to_another_user(next_engine) -> None:
    first = next_engine()
    number, user = kept_database(first), first.url.username
    second = next_engine()
    assert kept_database(second) == number
    assert second.url.username != user


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE attempts ADD COLUMN left_behind int",
        "DROP INDEX ix_attempts_flag_opened_us",
        "CREATE FUNCTION left_behind() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TABLE left_behind (number int)",
        "GRANT SELECT ON attempts TO PUBLIC",
        "ALTER TABLE attempts RENAME COLUMN model TO left_behind",
    ],
)
def test_who_changes_more_than_rows_has_it_last(next_engine, change: str) -> None:
    first = next_engine()
    number = kept_database(first)
    with first.begin() as connection:
        connection.execute(text(change))
    second = next_engine()
    assert kept_database(second) != number
    with second.connect() as connection:
        columns = connection.execute(text("SELECT * FROM attempts")).keys()
        assert "left_behind" not in columns


def test_who_still_writes_has_no_user(next_engine) -> None:
    first = next_engine()
    held = first.connect()
    held.execute(text("SELECT 1"))
    next_engine()
    with pytest.raises(OperationalError):
        held.execute(text("SELECT 1"))
    held.invalidate()
    with pytest.raises(OperationalError, match="does not exist"):
        enter(first)


def test_a_lock_that_is_held_holds_up_nobody(next_engine, lent) -> None:
    first = next_engine()
    url = first.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as holder:
        holder.execute("LOCK TABLE attempts")
        second = next_engine()
        enter(second)
        holder.close()
