"""Days add up to the period in every zone, on books whose charges crowd around midnights."""

from datetime import date, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select, update

from ledger.economics.cost import TokenBasis
from ledger.exports.focus import focus_rows
from ledger.exports.focus_columns import FOCUS_1_4
from ledger.orm import tables as orm
from ledger.reporting_zone import ReportingZone, declare_zone
from ledger.reports.daily import spend_by_day
from ledger.reports.survey import survey
from ledger.spans import DAY_US, HOUR_US, Scope
from ledger.writing.repository import LedgerRepository

ZONES = ["UTC", "Asia/Kolkata", "Europe/Berlin", "America/New_York"]
# Clocks change in Berlin on 25 October and in New York on 1 November.
DAYS = [date(2026, 10, 24) + timedelta(days=number) for number in range(10)]
FIRST_US = ReportingZone().midnight_us(DAYS[0])
NAMES = [column.name for column in FOCUS_1_4.columns]
USED, IDLE, LOST = 11, 7, 3
WEEK_S = 7 * 24 * 3_600


def midnights() -> list[int]:
    return sorted({ReportingZone(zone).midnight_us(day) for zone in ZONES for day in DAYS})


@pytest.fixture
def crowded(engine, opened, settled):
    """A charge at each midnight, just before and after, of an amount that no other has; hours."""
    instants = [at_us + beside for at_us in midnights() for beside in (-1, 0, 1, 1_700_000_000)]
    costs = {}
    records = []
    for number, at_us in enumerate(instants):
        costs[at_us] = costs.get(at_us, 0) + 3 ** (number % 30)
        where = {"opened_us": at_us, "team_id": "search" if number % 3 else "ads"}
        records.append(opened(number, holds=(), bound_pusd=10**15, **where))
        records.append(settled(number, cost_pusd=3 ** (number % 30), settled_us=at_us + 5))
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)
    hours = range(FIRST_US - 2 * DAY_US, FIRST_US + 12 * DAY_US, HOUR_US)
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), {
            "pool": "chat", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 1,
            "billing": "reserved", "pusd_per_hour": USED + IDLE + LOST, "since": DAYS[0],
            "recorded_us": 0,
        })  # fmt: skip
        connection.execute(insert(orm.GpuHourRow), [
            {
                "pool": "chat", "hour_us": hour_us, "contract_id": 1, "replicas": 1,
                "bill_pusd": USED + IDLE + LOST, "used_pusd": USED, "idle_pusd": IDLE,
                "unavailable_pusd": LOST, "busy_us": 0, "unavailable_us": 0, "closed_us": 1,
            }
            for hour_us in hours
        ])  # fmt: skip
    return engine, costs, hours


def spans(zone: str) -> st.SearchStrategy[Scope]:
    """Whole days of the zone, and spans that begin and end anywhere."""
    places = [ReportingZone(zone).midnight_us(day) for day in DAYS]
    anywhere = st.integers(FIRST_US, FIRST_US + 9 * DAY_US)
    edge = st.one_of(st.sampled_from(places), anywhere)
    pairs = st.tuples(edge, edge).filter(lambda pair: pair[0] != pair[1])
    return pairs.map(lambda pair: Scope(min(pair), max(pair)))


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), name=st.sampled_from(ZONES))
def test_the_days_of_a_period_are_the_period(crowded, data, name: str) -> None:
    engine, costs, hours = crowded
    zone, scope = ReportingZone(name), data.draw(spans(name))
    with engine.connect() as connection:
        days = spend_by_day(connection, scope, zone)
    inside = [hour for hour in hours if scope.start_us <= hour < scope.end_us]
    api = sum(cost for at, cost in costs.items() if scope.start_us <= at < scope.end_us)
    assert sum(day.api_pusd for day in days) == api
    assert sum(day.own_pusd for day in days) == USED * len(inside)
    assert sum(day.idle_pusd for day in days) == (IDLE + LOST) * len(inside)
    for day in days:  # each by itself, and not in the sum alone
        mine = sum(cost for at, cost in costs.items() if day.start_us <= at < day.end_us)
        begun = [hour for hour in inside if day.start_us <= hour < day.end_us]
        assert (day.api_pusd, day.own_pusd) == (mine, USED * len(begun))
        assert day.total_pusd == mine + (USED + IDLE + LOST) * len(begun)


@pytest.mark.parametrize("name", ["Asia/Kolkata", "Europe/Berlin"])
def test_focus_files_of_days_are_the_file_of_the_period(crowded, name: str) -> None:
    engine, costs, _ = crowded
    zone = ReportingZone(name)
    first, last = zone.midnight_us(DAYS[0]), zone.midnight_us(DAYS[-1])
    with engine.begin() as connection:
        declare_zone(connection, name, 1)
    with engine.connect() as connection:
        whole = exported(connection, Scope(first, last))
        pieces = [exported(connection, day) for day in zone.days(Scope(first, last))]
    assert [row for piece in pieces for row in piece] == whole
    assert len(pieces) == len(DAYS) - 1
    for row in whole:
        start_us, end_us = row["ChargePeriodStart"], row["ChargePeriodEnd"]
        assert (start_us, end_us) == zone.day(start_us)
        assert (row["BillingPeriodStart"], row["BillingPeriodEnd"]) == zone.month(start_us)
    api = [row["BilledCost"] for row in whole if row["x_Backend"] == "api"]
    assert sum(api) == sum(cost for at, cost in costs.items() if first <= at < last)


def exported(connection, scope: Scope) -> list[dict]:
    rows = focus_rows(connection, scope, lambda _: None, period_us=DAY_US)
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def test_a_team_has_its_own_days(crowded) -> None:
    engine, _, _ = crowded
    scope = Scope(FIRST_US, FIRST_US + 5 * DAY_US)
    zone = ReportingZone("Asia/Kolkata")
    with engine.connect() as connection:
        everyone = spend_by_day(connection, scope, zone)
        teams = [
            spend_by_day(connection, Scope(scope.start_us, scope.end_us, name), zone)
            for name in ("search", "ads")
        ]
    assert [day.api_pusd for day in everyone] == [
        sum(days) for days in zip(*([day.api_pusd for day in each] for each in teams), strict=True)
    ]
    assert {day.idle_pusd for each in teams for day in each} == {0}


def test_negative_control_days_of_utc_are_others(crowded) -> None:
    """The charges lie so that a wrong zone shows in single days, though not in their sum."""
    engine, _, _ = crowded
    scope = Scope(FIRST_US, FIRST_US + 5 * DAY_US)
    with engine.connect() as connection:
        found = [
            [day.api_pusd for day in spend_by_day(connection, scope, ReportingZone(name))]
            for name in ZONES
        ]
    assert len({sum(days) for days in found}) == 1
    assert len({tuple(days) for days in found}) == len(ZONES)


@pytest.mark.parametrize("name", ZONES)
def test_adjustments_are_of_the_day_that_was_billed_and_of_no_team(crowded, adjust, name) -> None:
    engine, _, _ = crowded
    zone, at_us = ReportingZone(name), FIRST_US + 3 * DAY_US - 1
    adjust(engine, "openai", at_us, -5)
    adjust(engine, "gpu:chat", at_us, 12)
    scope = Scope(FIRST_US, FIRST_US + 5 * DAY_US)
    with engine.connect() as connection:
        days = spend_by_day(connection, scope, zone)
        team = spend_by_day(connection, Scope(scope.start_us, scope.end_us, "ads"), zone)
        before = spend_by_day(connection, Scope(FIRST_US, at_us), zone)
    (day,) = [day for day in days if day.adjusted_pusd]
    assert day.start_us <= at_us < day.end_us
    assert day.adjusted_pusd == 7
    assert day.total_pusd == day.api_pusd + day.own_pusd + day.idle_pusd + day.ops_pusd + 7
    assert not any(day.adjusted_pusd for day in (*team, *before))


@pytest.mark.parametrize("name", ZONES)
def test_ops_of_a_day_are_those_of_the_hours_that_begin_in_it(crowded, name: str) -> None:
    """Midnight of Kolkata cuts an hour: half of its ops counted in one month or in the other."""
    engine, _, hours = crowded
    changed_us = FIRST_US + 5 * DAY_US
    with engine.begin() as connection:
        connection.execute(update(orm.GpuContractRow).values(ops_seconds_per_week=WEEK_S))
        (row,) = connection.execute(select(*orm.GpuContractRow.__table__.columns)).mappings()
        rates = [(0, 5), (changed_us, 70)]
        connection.execute(update(orm.GpuContractRow).values(ops_pusd_per_hour=rates[0][1]))
        connection.execute(insert(orm.GpuContractRow), {
            **row, "id": 2, "recorded_us": changed_us - 1, "ops_pusd_per_hour": rates[1][1],
        })  # fmt: skip
    zone = ReportingZone(name)
    cuts = [zone.midnight_us(day) for day in DAYS]
    with engine.connect() as connection:
        together = spend_by_day(connection, Scope(cuts[0], cuts[-1]), zone)
        for day in together:
            scope = Scope(day.start_us, day.end_us)
            begun = [hour for hour in hours if scope.start_us <= hour < scope.end_us]
            ops = sum(rates[hour >= changed_us][1] for hour in begun)
            assert day.ops_pusd == ops
            assert spend_by_day(connection, scope, zone) == [day], "a day alone"
            found = survey(connection, scope, bucket_us=DAY_US, basis=TokenBasis.INPUT_OUTPUT)
            assert found.standing.fixed.ops_pusd == ops
