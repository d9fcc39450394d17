"""Closing hours: exact, once, by contract, whatever was seen of the engines."""

from datetime import date

import pytest
from sqlalchemy import insert, select

from ledger import orm
from ledger.hours import GRACE_US, HOUR_US, close_hours, gpu_entry
from ledger.repository import Repository
from ledger.verify import verify

DAY_US = 1_779_926_400_000_000  # midnight of 2026-05-28 UTC
RATE = 3_600_000_000_000  # 3.60 USD an hour
MINUTE_US = 60_000_000


def contract(engine, **changes):
    row = {
        "pool": "chat",
        "gpu_type": "H200",
        "gpus_per_replica": 1,
        "replicas": 2,
        "billing": "reserved",
        "pusd_per_hour": RATE,
        "since": date(2026, 5, 28),
        "recorded_us": DAY_US,
        **changes,
    }
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContract), [row])


def sample(engine, minute, health, name="chat/0"):
    row = {"at_us": DAY_US + minute * MINUTE_US, "pool": "chat", "engine": name, "health": health}
    with engine.begin() as connection:
        connection.execute(insert(orm.EngineSample), [row])


def hours(engine):
    with engine.connect() as connection:
        table = orm.GpuHour
        columns = (table.hour_us, table.bill_pusd, table.used_pusd, table.idle_pusd,
                   table.unavailable_pusd)  # fmt: skip
        return [tuple(row) for row in connection.execute(select(*columns).order_by(table.hour_us))]


def close_after(engine, count):
    return close_hours(engine, at_us=DAY_US + count * HOUR_US + GRACE_US)


@pytest.fixture
def own(opened, settled):
    def own(number, *, team, engine_us, cost, hour=0):
        return (
            opened(number, backend="own", pool="chat", provider=None, team_id=team, holds=(),
                   bound_pusd=10**13, opened_us=DAY_US + hour * HOUR_US),
            settled(number, cost_pusd=cost, engine_us=engine_us,
                    settled_us=DAY_US + hour * HOUR_US + number),
        )  # fmt: skip

    return own


def test_an_hour_without_a_request_is_idle_and_closed_once(engine):
    contract(engine)
    assert close_after(engine, 2) == 2
    assert close_after(engine, 2) == 0
    assert hours(engine) == [
        (DAY_US, 2 * RATE, 0, 2 * RATE, 0),
        (DAY_US + HOUR_US, 2 * RATE, 0, 2 * RATE, 0),
    ]


def test_an_hour_is_left_open_until_its_settles_had_time(engine):
    contract(engine)
    assert close_hours(engine, at_us=DAY_US + HOUR_US + GRACE_US - 1) == 0


def test_use_is_split_by_engine_time_and_corrects_what_was_charged(engine, own):
    contract(engine)
    records = [
        record
        for number, team, engine_us, cost in (
            (1, "search", HOUR_US // 2, RATE),  # charged twice what it used
            (2, "search", HOUR_US // 4, 7),
            (3, "ads", HOUR_US // 4, RATE // 4),
        )
        for record in own(number, team=team, engine_us=engine_us, cost=cost)
    ]
    Repository(engine, host="h").import_records(records, journal="j", at_us=1)
    sample(engine, 0, "healthy")
    sample(engine, 10, "loading")  # for ten minutes
    sample(engine, 20, "healthy")
    close_after(engine, 1)
    minute = RATE // 60
    assert hours(engine) == [(DAY_US, 2 * RATE, RATE, 50 * minute, 10 * minute)]
    with engine.connect() as connection:
        teams = connection.execute(
            select(orm.GpuHourTeam.team_id, orm.GpuHourTeam.used_pusd).order_by("team_id")
        ).all()
        assert [tuple(team) for team in teams] == [("ads", RATE // 4), ("search", 3 * RATE // 4)]
        balances = dict(
            connection.execute(
                select(orm.Posting.account, orm.exact_sum(orm.Posting.amount_pusd)).group_by(
                    orm.Posting.account
                )
            ).all()
        )
        assert verify(connection).holds
    assert balances == {
        "expense:team:search": 3 * RATE // 4,
        "expense:team:ads": RATE // 4,
        "expense:idle:chat": 50 * minute,
        "expense:unavailable:chat": 10 * minute,
        "payable:gpu:chat": -2 * RATE,
    }


def test_a_sample_reaches_across_hours_but_not_across_silence(engine):
    contract(engine, replicas=1)
    sample(engine, 50, "healthy")
    sample(engine, 65, "down")  # 50 to 65: ten minutes of the first hour, five of the second
    sample(engine, 180, "down")  # after silence: only the last quarter of an hour
    close_after(engine, 4)
    quarter = RATE // 4
    assert [row[4] for row in hours(engine)] == [RATE // 6, RATE // 12, quarter, 0]


def test_machines_on_demand_are_billed_while_they_run(engine):
    contract(engine, replicas=1, billing="on_demand")
    sample(engine, 0, "loading")
    sample(engine, 10, "loading")
    sample(engine, 20, "healthy")
    sample(engine, 30, "down")
    close_after(engine, 1)
    ((_, bill, used, idle, unavailable),) = hours(engine)
    assert bill == RATE // 3
    assert used + idle + unavailable == bill


def test_without_a_rate_an_hour_stays_open_until_one_is_stated(engine):
    contract(engine, pusd_per_hour=None)
    assert close_after(engine, 3) == 0
    contract(engine, recorded_us=DAY_US + 2 * HOUR_US)
    assert close_after(engine, 3) == 3


def test_a_rate_changes_from_the_hour_in_which_it_is_stated(engine):
    contract(engine)
    contract(engine, pusd_per_hour=RATE // 2, recorded_us=DAY_US + HOUR_US + 5)
    close_after(engine, 3)
    assert [row[1] for row in hours(engine)] == [2 * RATE, RATE, RATE]


def test_nothing_is_billed_outside_the_term(engine):
    contract(engine, until=date(2026, 5, 28), recorded_us=DAY_US)
    close_after(engine, 26)
    assert [row[1] for row in hours(engine)] == [2 * RATE] * 24 + [0, 0]


def test_without_a_start_the_first_evidence_begins(engine, own):
    contract(engine, since=None, recorded_us=DAY_US + 9 * HOUR_US)
    records = own(1, team="ads", engine_us=5, cost=5, hour=7)
    Repository(engine, host="h").import_records(records, journal="j", at_us=1)
    close_after(engine, 9)
    assert [row[0] for row in hours(engine)] == [DAY_US + 7 * HOUR_US, DAY_US + 8 * HOUR_US]


def test_the_entry_of_an_hour_is_named_after_it():
    assert gpu_entry("chat", 5) == "gpu:chat:5"
