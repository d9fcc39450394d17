"""The month's spend is its days'; the forecast rests on whole days of the zone alone."""

from collections import Counter
from datetime import date

import pytest
from sqlalchemy import func, insert, select

from ledger.economics.month_forecast import MonthForecast
from ledger.orm import tables as orm
from ledger.queries import reads as queries
from ledger.reporting_zone import ReportingZone
from ledger.reports.daily import spend_by_day
from ledger.reports.month_outlook import MonthOutlook, month_outlook, month_text
from ledger.seals.retire import AttemptRetirer
from ledger.spans import DAY_US, HOUR_US, Scope
from ledger.sums.rollups import Rollups
from ledger.writing.repository import LedgerRepository

COST = 10**9


@pytest.fixture
def steady(engine, opened, settled):
    """$0.001 an hour from 20 October on, in Kolkata's days and up to noon of 12 November."""
    zone = ReportingZone("Asia/Kolkata")
    start_us = zone.midnight_us(date(2026, 10, 20)) - 3 * HOUR_US  # a part of a day before
    now_us = zone.midnight_us(date(2026, 11, 12)) + 12 * HOUR_US
    records = []
    for number, at_us in enumerate(range(start_us, now_us, HOUR_US)):
        records.append(opened(number, holds=(), bound_pusd=10**13, opened_us=at_us))
        records.append(settled(number, cost_pusd=COST, settled_us=at_us + 10))
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)
    return engine, zone, now_us


def test_a_steady_month_ends_where_its_pace_leads(steady) -> None:
    engine, zone, now_us = steady
    with engine.connect() as connection:
        found = month_outlook(connection, now_us, zone)
    assert (found.start_us, found.end_us) == zone.month(now_us)
    assert found.spent_pusd == COST * (11 * 24 + 12)
    assert found.forecast is not None
    assert found.forecast.days_left == 19  # today is one of them
    total = COST * 24 * 30
    assert abs(found.forecast.expected_pusd - total) < total // 10**6
    assert found.forecast.high_pusd - found.forecast.low_pusd < total // 10**6


def test_what_today_cost_beyond_its_pace_is_added_to_its_rest(steady, opened, settled) -> None:
    """Once today had cost as much as a usual day, the rest of it was forecast at nothing."""
    engine, zone, now_us = steady
    dear = [opened(9001, holds=(), bound_pusd=10**14, opened_us=now_us - HOUR_US),
            settled(9001, cost_pusd=24 * COST, settled_us=now_us - 1)]  # fmt: skip
    LedgerRepository(engine, host="h").import_records(dear, journal="k", at_us=2)
    with engine.connect() as connection:
        found = month_outlook(connection, now_us, zone)
    assert found.forecast is not None
    ends = found.forecast
    total = COST * 24 * (30 + 1)
    assert abs(ends.expected_pusd - total) <= COST, "an hour that midnight cuts is one"
    assert ends.low_pusd <= ends.expected_pusd <= ends.high_pusd
    assert found.spent_pusd == COST * (11 * 24 + 36)


def test_a_day_whose_cost_comes_early_is_not_counted_again(engine, opened, settled) -> None:
    """One job just after midnight is the day: at noon nothing more is to come."""
    zone = ReportingZone()
    start_us, records = zone.midnight_us(date(2026, 10, 20)), []
    for number in range(24):
        at_us = start_us + number * DAY_US + HOUR_US // 6
        records.append(opened(number, holds=(), bound_pusd=10**14, opened_us=at_us))
        records.append(settled(number, cost_pusd=24 * COST, settled_us=at_us + 10))
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)
    now_us = zone.midnight_us(date(2026, 11, 12)) + 12 * HOUR_US
    with engine.connect() as connection:
        found = month_outlook(connection, now_us, zone)
    assert found.forecast is not None
    total = COST * 24 * 30
    assert found.spent_pusd == COST * 24 * 12
    assert abs(found.forecast.expected_pusd - total) < total // 10**6


def test_another_team_has_another_month(steady) -> None:
    engine, zone, now_us = steady
    with engine.connect() as connection:
        assert month_outlook(connection, now_us, zone, "nobody").spent_pusd == 0
        early = zone.midnight_us(date(2026, 10, 24)) + HOUR_US
        assert month_outlook(connection, early, zone).forecast is None


def test_what_the_month_spent_before_the_books_had_whole_days_counts(engine, opened, settled):
    """Books that begin at noon of the 3rd: half a day is spent, and no day to reckon with."""
    zone = ReportingZone()
    start_us = zone.midnight_us(date(2026, 11, 3)) + 12 * HOUR_US
    now_us = zone.midnight_us(date(2026, 11, 14))
    records = []
    for number, at_us in enumerate(range(start_us, now_us, HOUR_US)):
        records.append(opened(number, holds=(), bound_pusd=10**13, opened_us=at_us))
        records.append(settled(number, cost_pusd=COST, settled_us=at_us + 10))
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)
    with engine.connect() as connection:
        found = month_outlook(connection, now_us, zone)
    assert found.spent_pusd == COST * (now_us - start_us) // HOUR_US
    assert found.forecast is not None
    total = found.spent_pusd + 17 * 24 * COST
    assert abs(found.forecast.expected_pusd - total) < total // 10**6


def test_days_before_a_team_began_to_spend_are_not_its_pace(steady, opened, settled) -> None:
    """Three weeks of nothing are no week's pace: it is told from whole days of its own."""
    engine, zone, now_us = steady
    start_us = zone.midnight_us(date(2026, 11, 3)) + 18 * HOUR_US
    records = []
    for number, at_us in enumerate(range(start_us, now_us, HOUR_US), 10_000):
        bound = {"holds": (), "bound_pusd": 10**13, "opened_us": at_us}
        records.append(opened(number, team_id="new", **bound))
        records.append(settled(number, cost_pusd=COST, settled_us=at_us + 10))
    LedgerRepository(engine, host="h").import_records(records, journal="k", at_us=1)
    with engine.connect() as connection:
        found = month_outlook(connection, now_us, zone, "new")
        early = month_outlook(connection, zone.midnight_us(date(2026, 11, 9)), zone, "new")
        idle = month_outlook(connection, now_us, zone, "nobody")
    assert found.spent_pusd == COST * len(records) // 2
    assert found.forecast is not None
    total = COST * (27 * 24 + 6)  # from the 4th on, and the evening of the 3rd
    assert abs(found.forecast.expected_pusd - total) < total // 10**6
    assert early.forecast is None
    assert idle.forecast is not None
    assert idle.forecast.expected_pusd == 0


def test_days_whose_attempts_were_retired_are_days_of_the_books(steady, seal_all) -> None:
    """Red before: with `retain_days` the pace was of the days whose attempts were kept.

    And days of Kolkata lacked both halves of the UTC hours that their midnights cut. An hour that
    is only summed counts where it begins, so a month may have one hour more or less.
    """
    engine, zone, now_us = steady
    with engine.connect() as connection:
        before = month_outlook(connection, now_us, zone)
        first_us = queries.first_us(connection)
        spent = spend_by_day(connection, Scope(first_us, now_us), zone)
    seal_all(engine, rows_at_once=70)
    while Rollups(engine).follow():
        pass
    while not AttemptRetirer(engine).step(before_us=now_us - 9 * DAY_US, at_us=1).waits_for:
        pass
    first_us -= first_us % HOUR_US
    with engine.connect() as connection:
        oldest = connection.execute(select(func.min(orm.AttemptRow.opened_us))).scalar_one()
        assert oldest > now_us - 10 * DAY_US
        assert queries.first_us(connection) == first_us
        found = month_outlook(connection, now_us, zone)
        days = spend_by_day(connection, Scope(first_us, now_us), zone)
    assert sum(day.total_pusd for day in days) == sum(day.total_pusd for day in spent)
    whole = [day.total_pusd // COST for day in days[1:-1]]
    assert Counter(whole) == {24: len(whole) - 1, 23: 1}, "the first of those that rows tell"
    assert found.spent_pusd == before.spent_pusd - COST
    assert found.forecast is not None
    assert before.forecast is not None
    assert -2 * COST < found.forecast.expected_pusd - before.forecast.expected_pusd <= 0


def test_gpu_hours_without_any_attempt_have_a_forecast(engine) -> None:
    """Red before: books in which nobody had asked anything said that their days were missing."""
    zone = ReportingZone()
    start_us, now_us = zone.midnight_us(date(2026, 11, 1)), zone.midnight_us(date(2026, 11, 16))
    idle = {"pool": "chat", "contract_id": 1, "replicas": 1, "bill_pusd": COST,
            "used_pusd": 0, "idle_pusd": COST, "unavailable_pusd": 0,
            "busy_us": 0, "unavailable_us": 0}  # fmt: skip
    hours = [
        {**idle, "hour_us": at_us, "closed_us": at_us + HOUR_US}
        for at_us in range(start_us, now_us, HOUR_US)
    ]
    paid = {"pool": "chat", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 1,
            "billing": "on_demand", "pusd_per_hour": COST, "recorded_us": start_us,
            "ops_seconds_per_week": 0, "ops_pusd_per_hour": 0}  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [paid])
        connection.execute(insert(orm.GpuHourRow), hours)
    with engine.connect() as connection:
        found = month_outlook(connection, now_us, zone)
    assert found.spent_pusd == COST * 15 * 24
    assert found.forecast is not None
    total = COST * 30 * 24
    assert abs(found.forecast.expected_pusd - total) < total // 10**6


def test_an_empty_ledger_has_no_forecast(engine) -> None:
    with engine.connect() as connection:
        found = month_outlook(connection, 100 * DAY_US, ReportingZone())
    assert (found.spent_pusd, found.forecast) == (0, None)


def test_the_sentence_names_month_interval_and_days() -> None:
    zone = ReportingZone("Europe/Berlin")
    start_us, end_us = zone.month_named("2026-11")
    outlook = MonthOutlook(start_us, end_us, zone.name, 5, MonthForecast(9, 8, 11, 5, 1))
    assert month_text(outlook, "${:d}".format) == (
        "November 2026 has cost $5 so far; about $9 at its end ($8 to $11), 1 day is to come."
    )
    early = MonthOutlook(start_us, end_us, zone.name, 5, None)
    assert "7 whole days in the ledger" in month_text(early, str)


def test_adjustments_are_in_what_the_month_cost_and_move_no_day_to_come(steady, adjust) -> None:
    engine, zone, now_us = steady
    with engine.connect() as connection:
        before = month_outlook(connection, now_us, zone)
    adjust(engine, "openai", now_us - 3 * DAY_US, -9 * COST)
    adjust(engine, "openai", now_us - 4 * DAY_US, 2 * COST)
    adjust(engine, "openai", zone.month(now_us)[0] - 1, 40 * COST)  # of the month before
    with engine.connect() as connection:
        found = month_outlook(connection, now_us, zone)
        team = month_outlook(connection, now_us, zone, "search")
    assert (before.adjusted_pusd, found.adjusted_pusd, team.adjusted_pusd) == (0, -7 * COST, 0)
    assert found.spent_pusd == before.spent_pusd - 7 * COST
    assert before.forecast is not None
    assert found.forecast is not None
    assert found.forecast.expected_pusd == before.forecast.expected_pusd - 7 * COST
    assert found.forecast.high_pusd == before.forecast.high_pusd - 7 * COST


def test_the_sentence_names_adjustments_to_bills() -> None:
    zone = ReportingZone("Europe/Berlin")
    start_us, end_us = zone.month_named("2026-11")
    outlook = MonthOutlook(start_us, end_us, zone.name, 5, None, -3)
    assert month_text(outlook, "${:d}".format).startswith(
        "November 2026 has cost $5 so far ($-3 of that are adjustments to bills); a forecast"
    )
