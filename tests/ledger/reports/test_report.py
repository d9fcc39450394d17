"""The report's figures add up to the attempts and hours they come from."""

from datetime import date

from sqlalchemy import insert

from ledger.fleet.hours import HOUR_US, close_hours
from ledger.journals.records import ComparedCost
from ledger.orm import tables as orm
from ledger.queries.reads import Scope
from ledger.reports.report import ReportLine, report
from ledger.writing.repository import LedgerRepository

DAY_US = 1_779_926_400_000_000
RATE = 3_600_000_000_000


def fill(engine, opened, settled, refused):
    with engine.begin() as connection:
        connection.execute(
            insert(orm.GpuContractRow),
            [
                {
                    "pool": "chat", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 1,
                    "billing": "reserved", "pusd_per_hour": RATE, "since": date(2026, 5, 28),
                    "recorded_us": DAY_US,
                }
            ],
        )  # fmt: skip
    records = [refused(1)]
    for number in range(6):
        at = {"opened_us": DAY_US + number}
        own = {"backend": "own", "pool": "chat", "target": "pool:chat/0", "provider": None}
        where = {**at, **own} if number % 2 else at
        team = "search" if number < 4 else "ads"
        records.append(opened(number, team_id=team, holds=(), bound_pusd=10**13, **where))
        compared = (ComparedCost("openai/gpt-4o", 1, 1000),) if number % 2 else ()
        records.append(
            settled(
                number,
                cost_pusd=None if number == 4 else 100,
                engine_us=HOUR_US // 10 if number % 2 else 0,
                settled_us=DAY_US + 10 + number,
                compared=compared,
            )
        )
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)
    close_hours(engine, at_us=DAY_US + HOUR_US + HOUR_US // 2)


def test_groups_add_up_and_are_dearest_first(engine, opened, settled, refused):
    fill(engine, opened, settled, refused)
    with engine.connect() as connection:
        found = report(connection, Scope(DAY_US, DAY_US + 10 * HOUR_US))
    assert found.total == ReportLine("total", 6, 72, 30, 500, 1)
    assert found.teams == (
        ReportLine("search", 4, 48, 20, 400, 0),
        ReportLine("ads", 2, 24, 10, 100, 1),
    )
    assert [(line.name, line.cost_pusd) for line in found.backends] == [("own", 300), ("api", 200)]
    for group in (found.teams, found.models, found.backends, found.targets):
        assert sum(line.attempts for line in group) == 6
        assert sum(line.cost_pusd for line in group) == 500
    (pool,) = found.pools
    assert pool.bill_pusd == RATE
    assert pool.used_pusd + pool.idle_pusd + pool.unavailable_pusd == RATE
    assert pool.used_pusd == 3 * RATE // 10
    (compared,) = found.comparators
    assert (compared.comparator, compared.avoided_pusd) == ("openai/gpt-4o", 3000)
    assert not found.simulated


def test_of_a_teams_bill_it_has_what_it_used(engine, opened, settled, refused):
    """Closed hours and what runs since; the bills stay the pool's."""
    fill(engine, opened, settled, refused)
    with engine.begin() as connection:
        for hour in (0, 1):  # one attempt more, in the running hour
            at = DAY_US + hour * HOUR_US
            connection.execute(
                insert(orm.EngineSampleRow),
                {"at_us": at, "pool": "chat", "engine": "chat/0", "health": "healthy"},
            )
    own = {"backend": "own", "pool": "chat", "target": "pool:chat/0", "provider": None}
    at_us = DAY_US + HOUR_US + 10
    records = [
        opened(90, team_id="ads", holds=(), bound_pusd=10**13, opened_us=at_us, **own),
        settled(90, cost_pusd=100, engine_us=HOUR_US // 20, settled_us=at_us + 10),
    ]
    LedgerRepository(engine, host="h").import_records(records, journal="j2", at_us=1)
    span = (DAY_US, DAY_US + HOUR_US + HOUR_US // 2)
    with engine.connect() as connection:
        found = {team: report(connection, Scope(*span, team)) for team in (None, "search", "ads")}
    assert found[None].team_used_pusd is None
    assert found["search"].team_used_pusd == 2 * RATE // 10
    assert found["ads"].team_used_pusd == RATE // 10 + RATE // 20
    assert found["ads"].team == "ads"
    assert found["ads"].pools == found[None].pools
    used = found[None].pools[0].used_pusd + found[None].running[0].used_pusd
    assert sum(found[team].team_used_pusd for team in ("search", "ads")) == used


def test_what_runs_since_the_last_closed_hour_is_apart_and_split_alike(
    engine, opened, settled, refused
):
    fill(engine, opened, settled, refused)
    minute = HOUR_US // 60
    rows = [
        {"at_us": DAY_US + HOUR_US + n * minute, "pool": "chat", "engine": "chat/0", "health": what}
        for n, what in ((0, "healthy"), (6, "down"), (12, "healthy"))
    ]
    with engine.begin() as connection:
        connection.execute(insert(orm.EngineSampleRow), rows)
    with engine.connect() as connection:
        found = report(connection, Scope(DAY_US, DAY_US + HOUR_US + 30 * minute))
    (rest,) = found.running
    assert (rest.pool, rest.span_us, rest.bill_pusd) == ("chat", 30 * minute, RATE // 2)
    assert (rest.used_pusd, rest.unavailable_pusd) == (0, RATE // 10)
    assert rest.used_pusd + rest.idle_pusd + rest.unavailable_pusd == rest.bill_pusd
    (closed,) = found.pools
    assert (closed.span_us, closed.machine, closed.share_ppm) == (HOUR_US, None, 1_000_000)


def test_a_team_sees_its_own_attempts(engine, opened, settled, refused):
    fill(engine, opened, settled, refused)
    with engine.connect() as connection:
        found = report(connection, Scope(DAY_US, DAY_US + 10 * HOUR_US, team="ads"))
    assert [line.name for line in found.teams] == ["ads"]
    assert found.total.attempts == 2


def test_an_empty_span_is_all_zero(engine):
    with engine.connect() as connection:
        found = report(connection, Scope(0, 1))
    assert found.total == ReportLine("total", 0, 0, 0, 0, 0)
    assert (found.teams, found.pools, found.comparators, found.refused) == ((), (), (), 0)


def test_adjustments_are_named_by_party_and_are_in_the_days(
    engine, opened, settled, refused, adjust
):
    fill(engine, opened, settled, refused)
    adjust(engine, "openai", DAY_US + 5 * HOUR_US, -30)
    adjust(engine, "openai", DAY_US + 6 * HOUR_US, 10)
    adjust(engine, "gpu:chat", DAY_US + 6 * HOUR_US, 7)
    scope = Scope(DAY_US, DAY_US + 10 * HOUR_US)
    with engine.connect() as connection:
        found = report(connection, scope)
        team = report(connection, Scope(scope.start_us, scope.end_us, "ads"))
    assert [(line.party, line.pusd) for line in found.adjustments] == [
        ("gpu:chat", 7), ("provider:openai", -20),
    ]  # fmt: skip
    assert found.adjusted_pusd == -13 == sum(day.adjusted_pusd for day in found.days)
    bills = sum(line.bill_pusd for line in (*found.pools, *found.running))
    assert found.total_pusd == 200 + bills - 13 == sum(day.total_pusd for day in found.days)
    assert (team.adjustments, team.adjusted_pusd) == ((), 0)
