"""Spend by tag on both databases: each tag of an attempt counts."""

from sqlalchemy import update

from ledger.orm.tables import Attempt
from ledger.queries.scope import Scope
from ledger.queries.tags import tagged
from ledger.writing.repository import Repository


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
