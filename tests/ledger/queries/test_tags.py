"""Spend by tag on both databases: each tag of an attempt counts."""

from sqlalchemy import update

from ledger.orm.tables import Attempt, RollupTagging
from ledger.queries.scope import DAY_US, HOUR_US, Scope
from ledger.queries.tags import tagged
from ledger.sums.rollups import Rollups
from ledger.writing.repository import Repository

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US


def test_each_tag_of_an_attempt_counts(engine, opened, settled) -> None:
    records = []
    for n, tags in enumerate(((), (("app", "web"),), (("app", "web"), ("env", "dev")))):
        records.append(opened(n, tags=tags))
        records.append(settled(n, cost_pusd=10**n))
    Repository(engine, host="h").import_records(records, journal="history", at_us=5)
    with engine.connect() as connection:
        found = {one.tag: one for one in tagged(connection, Scope(0, 2**62))}
        assert tagged(connection, Scope(0, 1)) == []
    assert {tag: (one.attempts, one.cost_pusd) for tag, one in found.items()} == {
        "app=web": (2, 110), "env=dev": (1, 100),
    }  # fmt: skip
    with engine.begin() as connection:
        connection.execute(update(Attempt).values(tags=None))
        assert tagged(connection, Scope(0, 2**62)) == []


def test_what_is_added_up_is_read_from_sums_alone(engine, opened, settled, seal_all) -> None:
    records = [one for n in range(3) for one in (
        opened(n, opened_us=START_US + n * HOUR_US, tags=(("app", "web"),), holds=()),
        settled(n, settled_us=START_US + n * HOUR_US, cost_pusd=10**13 + n),
    )]  # fmt: skip
    Repository(engine, host="h").import_records(records, journal="j", at_us=START_US)
    seal_all(engine)
    while Rollups(engine).follow():
        pass
    scope = Scope(START_US, START_US + DAY_US)
    with engine.begin() as connection:
        wanted = tagged(connection, scope)
        assert [(one.attempts, one.cost_pusd) for one in wanted] == [(3, 3 * 10**13 + 3)]
        connection.execute(update(Attempt).values(tags=None))
        assert tagged(connection, scope) == wanted
        connection.execute(update(RollupTagging).values(from_us=scope.start_us + 1))
        assert tagged(connection, scope) == []  # kept since later: the rows are asked
