"""Reads by this zone's days say what reads of each day as a span of its own say."""

from datetime import date

import pytest

from ledger.economics.cost import TokenBasis
from ledger.queries import reads as queries
from ledger.reporting_zone import ReportingZone, declare_zone
from ledger.reports.series import spend
from ledger.reports.survey import spending
from ledger.reports.zone_days import day_hours, day_moments, day_spent, day_team_hours
from ledger.spans import DAY_US, Scope
from ledger.writing.repository import LedgerRepository


def read_spent(connection, scope: Scope, width_us: int) -> list[queries.SpendPoint]:
    return queries.spent(connection, scope, by="team", bucket_us=width_us)


@pytest.mark.parametrize("name", ["Asia/Kolkata", "America/New_York"])
def test_days_are_those_of_the_zone_and_add_up(random_sqlite, name: str) -> None:
    zone = ReportingZone(name)
    scope = Scope(random_sqlite.START_US, random_sqlite.end_us)
    with random_sqlite.reader.connect() as connection:
        spent = day_spent(connection, scope, zone, read_spent)
        moments = day_moments(connection, scope, None, zone)
        hours, teams = day_hours(connection, scope, zone), day_team_hours(connection, scope, zone)
        whole = read_spent(connection, scope, scope.end_us * 2)
        bills = queries.hours(connection, scope, bucket_us=scope.end_us * 2)
        used = queries.hours_by_team(connection, scope, bucket_us=scope.end_us * 2)
    for items in (spent, moments, hours, teams):
        starts = {item.start_us for item in items}
        assert len(starts) > 1
        assert starts == {zone.day(start)[0] for start in starts}
    for team in {point.name for point in whole}:
        mine = [point.cost_pusd for point in spent if point.name == team]
        assert sum(mine) == sum(point.cost_pusd for point in whole if point.name == team)
    assert sum(point.cost_pusd for point in spent) == sum(each.cost_pusd for each in moments)
    for field in ("hours", "bill_pusd", "used_pusd", "idle_pusd", "unavailable_pusd", "busy_us"):
        assert sum(getattr(cell, field) for cell in hours) == sum(
            getattr(cell, field) for cell in bills
        )
    assert sum(cell.used_pusd for cell in teams) == sum(cell.used_pusd for cell in used)


def test_in_utc_days_are_buckets(random_sqlite) -> None:
    scope = Scope(random_sqlite.START_US, random_sqlite.end_us)
    with random_sqlite.reader.connect() as connection:
        found = day_spent(connection, scope, ReportingZone(), read_spent)
        assert found == read_spent(connection, scope, DAY_US)


def test_a_chart_of_days_has_the_days_of_the_books(filled_zone_ledger) -> None:
    """The same dollars in all, in other days."""
    engine, scope, zone = filled_zone_ledger
    charts = []
    for name in ("UTC", zone.name):
        with engine.begin() as connection:
            declare_zone(connection, name, scope.start_us)
        with engine.connect() as connection:
            survey = spending(connection, scope, bucket_us=DAY_US, basis=TokenBasis.INPUT_OUTPUT)
        charts.append(spend(survey))
        assert {survey.bucket_of(amount.start_us)[0] for amount in charts[-1]} == {
            amount.start_us for amount in charts[-1]
        }
    first, second = charts
    assert sum(amount.pusd for amount in first) == sum(amount.pusd for amount in second) > 0
    assert {amount.start_us for amount in first} != {amount.start_us for amount in second}


@pytest.fixture
def filled_zone_ledger(engine, opened, settled):
    zone = ReportingZone("Asia/Kolkata")
    start_us = zone.midnight_us(date(2026, 10, 5))
    records = []
    for number in range(20):
        at_us = start_us + number * DAY_US // 2 + 60_000_000
        records.append(opened(number, holds=(), bound_pusd=10**13, opened_us=at_us))
        records.append(settled(number, cost_pusd=100 + number, settled_us=at_us + 10))
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)
    return engine, Scope(start_us, start_us + 10 * DAY_US), zone
