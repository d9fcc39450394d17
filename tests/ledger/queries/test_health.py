"""As of when, what is missing, what was refused."""

from sqlalchemy import insert

from ledger.orm import tables as orm
from ledger.queries import reads as queries
from ledger.queries.reads import Freshness, Scope
from ledger.reports.facts import flagged
from ledger.writing.repository import LedgerRepository

NOON_US = 1_780_000_000_000_000
SCOPE = Scope(NOON_US, NOON_US + 100)


def test_an_empty_ledger_says_that_it_knows_nothing(engine) -> None:
    with engine.connect() as connection:
        assert queries.freshness(connection) == Freshness(None, None, 0)
        assert queries.refusals(connection, SCOPE) == []
        assert queries.teams(connection, SCOPE) == []


def test_freshness_spans_the_books(engine, opened) -> None:
    records = [opened(1), opened(2), opened(3, team_id="support")]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOON_US)
    position = {"worker": "0", "host": "h", "segment": 0, "offset": 0}
    with engine.begin() as connection:
        for name, at_us in (("a", NOON_US + 50), ("b", NOON_US + 70)):
            row = {**position, "journal": name, "applied_us": at_us}
            connection.execute(insert(orm.JournalPositionRow), row)
    with engine.connect() as connection:
        fresh = queries.freshness(connection)
        assert (fresh.applied_us, fresh.first_us) == (NOON_US + 70, NOON_US + 1)
        assert queries.teams(connection, SCOPE) == ["search", "support"]


def test_refusals_are_grouped_most_frequent_first(engine, refused) -> None:
    records = [refused(n) for n in range(1, 6)] + [refused(500)]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOON_US)
    with engine.connect() as connection:
        (row,) = queries.refusals(connection, SCOPE)
        assert (row.reason, row.scope, row.requests) == ("budget", "team:search@month", 5)
        other = Scope(SCOPE.start_us, SCOPE.end_us, "support")
        assert queries.refusals(connection, other) == []


def test_what_a_person_should_look_at_is_counted_by_target(engine, opened, settled) -> None:
    records = []
    for number, changes in enumerate(({"disputed": True}, {"disputed": True}, {}, {"tier": "x"})):
        tier = {"unknown_tier": True} if "tier" in changes else {}
        records += [opened(number), settled(number, **changes, **tier)]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOON_US)
    with engine.connect() as connection:
        found = flagged(connection, SCOPE)
        assert [(finding.flag, finding.attempts, finding.cost_pusd) for finding in found] == [
            ("disputed", 2, 800), ("unknown_tier", 1, 400),
        ]  # fmt: skip
        assert flagged(connection, Scope(SCOPE.start_us, SCOPE.end_us, "nobody")) == []
