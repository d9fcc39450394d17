"""Old plans, changes, engines, hours and turns go; dollars by day and the newest of each stay."""

from dataclasses import replace

import pytest
from sqlalchemy import func, insert, select

from ledger.economics.scaling_score import InstanceRent, PlanSum, ScoredSpan
from ledger.fleet import fleet_reads as reads
from ledger.fleet.fleet_lease import take_lease
from ledger.fleet.fleet_records import FleetChange, FleetInstance, FleetPlanRecord, PlannerMemory
from ledger.fleet.scaling_books import ScalingBooks
from ledger.fleet.scaling_retention import forget_scaling
from ledger.orm import tables as orm
from ledger.reports.report_turns import claim_turn, mark_sent
from ledger.reports.scaling_read import earned_days
from ledger.spans import DAY_US, HOUR_US

USD = 10**12
DAYS = 6
LIMIT_US = 4 * DAY_US + HOUR_US  # inside the fifth day, which is young as a whole
RENT = InstanceRent(3 * USD, 60, 600)


@pytest.fixture
def fleet(engine):
    """Six days of two pools: an hour's score each hour, a plan, a change and an engine a day."""
    for pool in ("p", "q"):
        fence = take_lease(engine, pool, "h", now_us=0, length_us=100 * DAY_US)
        for day in range(DAYS):
            at_us = day * DAY_US + HOUR_US
            books = ScalingBooks(engine, pool, fence, now_us=at_us)
            token = f"{pool}.{day}"
            plan = FleetPlanRecord(pool, at_us, "act", day, 0, "earns_rent", "w", {"day": day})
            start = FleetChange(
                pool, at_us, "act", "start", token, 1, "earns_rent", "w", USD, at_us + HOUR_US
            )
            books.record_plan(plan)
            books.intend(start, FleetInstance(token, pool, 0, True, RENT, at_us))
            books.mark(token, "done", gone_us=at_us + 2 * HOUR_US)
            spans = [
                ScoredSpan(
                    day * DAY_US + hour * HOUR_US, HOUR_US, day + hour, PlanSum(hour, 7),
                    PlanSum(2, hour), (9 + hour, 5, 1), 4, hour % 2, 1 + hour % 3,
                ) for hour in range(24)
            ]  # fmt: skip
            books.score(PlannerMemory(at_us, {}, []), spans, {})
    return engine


def forget(engine) -> int:
    went = 0
    while some := forget_scaling(engine, before_us=LIMIT_US):
        went += some
    return went


def count(engine, table) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def test_dollars_by_day_and_of_all_time_stay(fleet) -> None:
    def told():
        with fleet.connect() as connection:
            return [
                (earned_days(connection, pool, start, end), reads.scored_whole(connection, pool))
                for pool in ("p", "q")
                for start, end in ((0, DAYS * DAY_US), (2 * DAY_US, 5 * DAY_US))
            ]

    before = told()
    assert forget(fleet) > 0
    assert told() == before
    assert count(fleet, orm.FleetHourRow) == 2 * (4 + 2 * 24)
    assert forget(fleet) == 0


def test_what_is_old_goes_and_what_is_young_stays(fleet) -> None:
    forget(fleet)
    for table in (orm.FleetPlanRow, orm.FleetChangeRow, orm.FleetInstanceRow):
        assert count(fleet, table) == 2 * 2
    with fleet.connect() as connection:
        assert [plan.wanted for plan in reads.plans(connection, "p")] == [5, 4]
        assert reads.has_instances(connection, "p")


def test_the_newest_of_each_and_what_is_open_stay_however_old(fleet) -> None:
    fence = take_lease(fleet, "p", "h", now_us=0, length_us=100 * DAY_US)
    books = ScalingBooks(fleet, "p", fence, now_us=HOUR_US)
    start = FleetChange("p", HOUR_US, "act", "start", "open", 1, "earns_rent", "w", USD, HOUR_US)
    books.intend(start, FleetInstance("open", "p", 0, True, RENT, HOUR_US))
    while forget_scaling(fleet, before_us=90 * DAY_US):
        pass
    with fleet.connect() as connection:
        assert [row.token for row in reads.open_instances(connection, "p")] == ["open"]
        assert [row.token for row in reads.changes(connection, "p")] == ["open"]
        assert reads.last_plan(connection, "q").wanted == 5
        assert reads.has_instances(connection, "q")
        assert reads.changes(connection, "q") == []


def test_an_advice_that_still_earns_stays(fleet) -> None:
    fence = take_lease(fleet, "p", "h", now_us=0, length_us=100 * DAY_US)
    change = FleetChange("p", HOUR_US, "advise", "start", None, 1, "earns_rent", "w", USD, LIMIT_US)
    books = ScalingBooks(fleet, "p", fence, now_us=HOUR_US)
    books.advise([change, replace(change, until_us=LIMIT_US - 1)])
    forget(fleet)
    with fleet.connect() as connection:
        assert [row.until_us for row in reads.changes(connection, "p") if row.mode == "advise"] == [
            LIMIT_US
        ]


def test_of_reports_the_newest_turn_stays_and_is_not_sent_again(engine) -> None:
    for day in range(3):
        turn = claim_turn(engine, "daily", "mail", day * DAY_US, at_us=day * DAY_US)
        mark_sent(engine, turn, at_us=day * DAY_US)
    with engine.begin() as connection:
        row = {"name": "daily", "place": "folder", "start_us": 0, "due_us": 0, "tries": 1}
        connection.execute(insert(orm.ReportTurnRow), [row])
    assert forget(engine) == 2
    assert count(engine, orm.ReportTurnRow) == 2
    assert claim_turn(engine, "daily", "mail", 2 * DAY_US, at_us=9 * DAY_US) is None
