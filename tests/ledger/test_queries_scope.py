"""A scope is half-open in time and names one team or everyone."""

import pytest
from sqlalchemy import select

from ledger.orm import Attempt
from ledger.queries_scope import HOUR_US, Scope, rows, total
from ledger.repository import Repository

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
    Repository(engine, host="h").import_records(records, journal="j", at_us=NOON_US)
    scope = Scope(NOON_US + start, NOON_US + end, team)
    with engine.connect() as connection:
        found = rows(connection, scope.narrow(select(Attempt.opened_us)))
        assert {row[0] - NOON_US for row in found} == expected
        summed = rows(connection, scope.narrow(select(total(Attempt.prompt_tokens_estimate))))
        assert summed == [(12 * len(expected),)]
