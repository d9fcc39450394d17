"""Coarser sums are made once a day is over, kept up with, and of no use after a foreign commit."""

import pytest
from sqlalchemy import func, insert, select, text, update

from ledger.economics.cost import TokenBasis
from ledger.orm import tables as orm
from ledger.queries.load import loads
from ledger.queries.rollups import rollup_progress
from ledger.reports.facts import facts, home_pools
from ledger.spans import DAY_US, HOUR_US, Scope
from ledger.sums.packing import CALM, PackedUntil, read_packed_until
from ledger.sums.rollup import WEEK_US
from ledger.sums.rollups import Rollups
from ledger.verify.rollups import sums_are_the_rows

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % WEEK_US
OWN = {"backend": "own", "pool": "chat", "provider": None, "holds": ()}


@pytest.fixture
def ledger(engine, opened, settled, write, seal_all):
    """`ledger(numbers...)`: an attempt on each of these days, sealed and added up."""

    def add(*days: int, follow: bool = True) -> None:
        for day in days:
            number = ledger.count = ledger.count + 1
            at = START_US + day * DAY_US + 2 * HOUR_US
            write(engine, opened(number, opened_us=at, **OWN), settled(number, engine_us=number))
        seal_all(engine)
        while follow and Rollups(engine).follow():
            pass

    def ledger(*days: int, follow: bool = True) -> None:
        add(*days, follow=follow)

    ledger.count = 0
    ledger.engine = engine
    return ledger


def counted(engine, table) -> list[tuple[int, int]]:
    query = select(table.start_us, func.sum(table.attempts)).group_by(table.start_us)
    with engine.connect() as connection:
        found = connection.execute(query.order_by(table.start_us)).all()
    return [((start - START_US) // DAY_US, int(count)) for start, count in found]


def until(engine) -> int:
    with engine.connect() as connection:
        here = rollup_progress(connection)
        assert here is not None
        return (here.packed_us - START_US) // DAY_US if here.packed_us else 0


def answers(engine):
    scope = Scope(START_US + HOUR_US, START_US + 20 * DAY_US)
    with engine.connect() as connection:
        here = rollup_progress(connection)
        load = loads(connection, scope, here, basis=TokenBasis.OUTPUT)
        return (
            sorted(facts(connection, scope, here).attempts, key=repr),
            load.pool_load(pool="chat", spills=()),
            home_pools(connection, here),
        )


def from_rows(engine):
    with engine.begin() as connection:
        seq = connection.execute(select(orm.RollupPositionRow.seq)).scalar_one()
        connection.execute(update(orm.RollupPositionRow).values(seq=0))
    found = answers(engine)
    with engine.begin() as connection:
        connection.execute(update(orm.RollupPositionRow).values(seq=seq))
    return found


def sound(engine) -> bool:
    with engine.connect() as connection:
        wrong = list(sums_are_the_rows(connection))
    return not wrong and answers(engine) == from_rows(engine)


def test_a_day_is_over_once_something_later_is_counted(ledger) -> None:
    ledger(0)
    assert until(ledger.engine) == 0
    assert counted(ledger.engine, orm.RollupQuarterRow) == []
    ledger(1)
    assert until(ledger.engine) == 1
    assert counted(ledger.engine, orm.RollupQuarterRow) == [(0, 1)]
    ledger(9)
    assert until(ledger.engine) == 9
    assert counted(ledger.engine, orm.RollupQuarterRow) == [(0, 1), (1, 1)]
    assert counted(ledger.engine, orm.RollupWeekRow) == [(0, 2)]
    assert sound(ledger.engine)


def test_what_comes_late_is_in_every_tier(ledger) -> None:
    ledger(0, 1, 15)
    ledger(1, 3, 8, -5)
    assert counted(ledger.engine, orm.RollupQuarterRow) == [(-5, 1), (0, 1), (1, 2), (3, 1), (8, 1)]
    assert counted(ledger.engine, orm.RollupWeekRow) == [(-7, 1), (0, 4), (7, 1)]
    assert sound(ledger.engine)


def test_a_host_of_the_version_before_makes_them_of_no_use_until_it_is_gone(ledger) -> None:
    """It adds to hours and days, and moves the position; it knows no other table."""
    ledger(0, 1, 9)
    assert until(ledger.engine) == 9
    before = counted(ledger.engine, orm.RollupWeekRow)
    ledger(1, follow=False)
    with ledger.engine.begin() as connection:
        held = connection.execute(select(*orm.RollupPackingRow.__table__.columns)).mappings().one()
    while Rollups(ledger.engine).follow():
        pass
    with ledger.engine.begin() as connection:  # as if the sums had been moved without these
        for table in ("rollup_quarters", "rollup_weeks", "rollup_load_days"):
            connection.execute(text(f"DELETE FROM {table}"))
        connection.execute(update(orm.RollupPackingRow).values(**dict(held)))
    assert until(ledger.engine) == 0
    assert sound(ledger.engine)
    ledger(10)  # one of ours: it sees what happened, and does not begin at once
    assert until(ledger.engine) == 0
    for _ in range(CALM - 1):
        ledger(10)
    assert until(ledger.engine) == 10
    assert counted(ledger.engine, orm.RollupWeekRow) == [(0, before[0][1] + 1)]
    assert sound(ledger.engine)


def test_a_ledger_that_was_there_before_them_waits_too(engine) -> None:
    with engine.begin() as connection:
        assert read_packed_until(connection, 0) == PackedUntil(0, CALM)
        assert read_packed_until(connection, 7) == PackedUntil(0, 0)
        row = {"name": "attempts", "version": 7, "until_us": 5, "calm": 3}
        connection.execute(insert(orm.RollupPackingRow), [row])
        assert read_packed_until(connection, 7) == PackedUntil(5, 3)
        assert read_packed_until(connection, 8) == PackedUntil(0, 0)


EDITS = {
    "UPDATE rollup_quarters SET attempts = attempts + 1": "rollup_quarters",
    "DELETE FROM rollup_quarters": "rollup_quarters",
    "UPDATE rollup_weeks SET cost_low = cost_low + 1": "rollup_weeks",
    "DELETE FROM rollup_weeks": "rollup_weeks",
    "UPDATE rollup_load_days SET requests = tokens": "rollup_load_days",
    "DELETE FROM rollup_load_days": "rollup_load_days",
}


def test_what_is_off_is_found(ledger) -> None:
    ledger(0, 9)
    for statement, said in EDITS.items():
        with ledger.engine.connect() as connection:
            connection.execute(text(statement))
            found = {subject.split()[0] for subject, _ in sums_are_the_rows(connection)}
            assert found == {said}, statement
            connection.rollback()
