"""Sums by tag begin behind what was passed without them, and anew after a foreign commit."""

from sqlalchemy import delete, func, select, update

from ledger.orm import tables as orm
from ledger.queries.tags import tagged
from ledger.spans import DAY_US, HOUR_US, Scope
from ledger.sums.rollups import Rollups
from ledger.sums.tagsums import EVERY, TagRollupStart, read_start
from ledger.verify.rollups import sums_are_the_rows
from ledger.writing.repository import LedgerRepository

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US


def test_an_upgrade_and_a_host_of_the_version_before(engine, opened, settled, seal_all) -> None:
    def come(*numbers: int) -> None:
        records = []
        for n in numbers:
            at = START_US + n * HOUR_US
            records.append(opened(n, opened_us=at, tags=(("app", "web"),), holds=()))
            records.append(settled(n, settled_us=at, cost_pusd=10**n))
        LedgerRepository(engine, host="h").import_records(
            records, journal=f"j{numbers}", at_us=START_US
        )
        seal_all(engine)
        while Rollups(engine).follow():
            pass

    def found(first: int) -> list[tuple[str, int]]:
        scope = Scope(START_US + first * HOUR_US, START_US + DAY_US)
        with engine.connect() as connection:
            assert list(sums_are_the_rows(connection)) == []
            return [(cost.tag, cost.cost_pusd) for cost in tagged(connection, scope)]

    def kept() -> tuple[TagRollupStart | None, int]:
        with engine.connect() as connection:
            version = connection.execute(select(orm.RollupPositionRow.version)).scalar_one()
            hours = select(func.count()).select_from(orm.RollupTagHourRow)
            return read_start(connection, version), connection.execute(hours).scalar_one()

    come(0, 1)
    assert kept() == (EVERY, 2)
    with engine.begin() as connection:  # as a ledger is whose schema was just upgraded
        connection.execute(delete(orm.RollupTaggingRow))
        connection.execute(delete(orm.RollupTagHourRow))
        connection.execute(delete(orm.RollupTagDayRow))
    assert found(0) == [("app=web", 11)]
    come(2)
    assert kept() == (TagRollupStart(2, START_US + 2 * HOUR_US + 1), 1)
    come(3, 4)
    assert found(0) == [("app=web", 11_111)]
    assert found(3) == [("app=web", 11_000)]
    with engine.begin() as connection:  # somebody who knows no tags moved the sums
        connection.execute(
            update(orm.RollupPositionRow).values(version=orm.RollupPositionRow.version + 1)
        )
    assert kept() == (None, 3)
    assert found(3) == [("app=web", 11_000)]
    come(5)
    assert found(3) == [("app=web", 111_000)]
    assert kept()[1] == 1
    Rollups(engine).rebuild()
    assert kept() == (EVERY, 6)
    assert found(0) == [("app=web", 111_111)]
    with engine.begin() as connection:
        connection.execute(update(orm.RollupTagDayRow).values(attempts=7))
    with engine.connect() as connection:
        ((where, _),) = sums_are_the_rows(connection)
    assert where == f"rollup_tag_days {START_US}"
