"""A scope is half-open in time and names one team or everyone."""

import pytest
from sqlalchemy import select

from ledger.orm.tables import AttemptRow
from ledger.spans import DAY_US, HOUR_US, Scope, held_scope, rows, total
from ledger.writing.repository import LedgerRepository

NOON_US = 1_780_000_000_000_000


def test_hours() -> None:
    assert Scope(0, 3 * HOUR_US // 2).hours == 1.5


@pytest.mark.parametrize(
    ("span", "end", "start"),
    [
        (HOUR_US, 5 * HOUR_US + 7, 4 * HOUR_US + 7),
        (24 * HOUR_US, 50 * HOUR_US + 7, 26 * HOUR_US),
        (24 * HOUR_US, 50 * HOUR_US, 26 * HOUR_US),
    ],
)
def test_a_period_beyond_an_hour_starts_at_a_full_one(span: int, end: int, start: int) -> None:
    assert Scope.last(span, end, "search") == Scope(start, end, "search")


@pytest.mark.parametrize(
    ("start", "end", "team", "expected"),
    [(1, 4, None, {1, 2, 3}), (2, 3, None, {2}), (1, 9, "support", {3}), (1, 9, "nobody", set())],
)
def test_narrow(engine, opened, start: int, end: int, team: str | None, expected: set) -> None:
    records = [opened(n, team_id="support" if n == 3 else "search") for n in range(1, 4)]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOON_US)
    scope = Scope(NOON_US + start, NOON_US + end, team)
    with engine.connect() as connection:
        found = rows(connection, scope.narrow(select(AttemptRow.opened_us)))
        assert {row[0] - NOON_US for row in found} == expected
        summed = rows(connection, scope.narrow(select(total(AttemptRow.prompt_tokens_estimate))))
        assert summed == [(12 * len(expected),)]


def test_all_of_time_is_cut_to_the_days_that_the_books_have(engine, opened) -> None:
    """An export asks for each of them: of the whole calendar that would be millions of queries."""
    days = [NOON_US // DAY_US * DAY_US + place * DAY_US for place in range(4)]
    always, nobody = Scope(-(10**17), 10**17, "search"), Scope(5, 6)
    with engine.connect() as connection:
        assert (
            held_scope(connection, always).end_us - held_scope(connection, always).start_us
            == DAY_US
        )
    records = [opened(1), opened(2, opened_us=NOON_US + 2 * DAY_US)]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOON_US)
    with engine.connect() as connection:
        assert held_scope(connection, always) == Scope(days[0], days[3], "search")
        inside = Scope(days[1] + HOUR_US, days[2], None)
        assert held_scope(connection, inside) == inside
        empty = held_scope(connection, nobody)
        assert empty.end_us <= empty.start_us
