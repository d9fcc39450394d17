"""A month's days to come are reckoned at the rates known for them, its past as it was booked."""

from datetime import date

import pytest
from sqlalchemy import insert

from ledger.manual_entries import RATE, ManualEntry, enter
from ledger.orm import tables as orm
from ledger.reporting_zone import ReportingZone
from ledger.reports.month_outlook import month_outlook, month_text
from ledger.spans import DAY_US, HOUR_US
from ledger.writing.repository import LedgerRepository

USD = 10**12
UTC = ReportingZone()
DAY = UTC.midnight_us(date(2026, 11, 16))  # 15 days of the month are over, 15 to come
FIRST = DAY - 56 * DAY_US


@pytest.fixture(autouse=True)
def first_attempt(engine, opened, settled) -> None:
    """The books begin with a request that cost nothing."""
    records = [opened(1, holds=(), opened_us=FIRST), settled(1, cost_pusd=0, settled_us=FIRST + 9)]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)


def contract(pusd_per_hour: int | None, recorded_us: int = 0, **changes: object) -> dict:
    return {
        "pool": "chat", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 1,
        "billing": "reserved", "pusd_per_hour": pusd_per_hour, "source": None, "since": None,
        "until": None, "recorded_us": recorded_us, "ops_seconds_per_week": 0,
        "ops_pusd_per_hour": 0, **changes,
    }  # fmt: skip


def close_hours(connection, until_us: int, rate_of, *, used: float = 1.0) -> None:
    """Close every hour up to `until_us` at its rate; a team used its part of each."""
    rows, shares = [], []
    for hour_us in range(FIRST, until_us, HOUR_US):
        bill = rate_of(hour_us)
        mine = round(bill * used)
        rows.append({
            "pool": "chat", "hour_us": hour_us, "contract_id": 1, "replicas": 1, "bill_pusd": bill,
            "used_pusd": mine, "idle_pusd": bill - mine, "unavailable_pusd": 0, "closed_us": 1,
            "busy_us": round(used * HOUR_US), "unavailable_us": 0,
        })  # fmt: skip
        shares.append({
            "pool": "chat", "hour_us": hour_us, "team_id": "search", "used_pusd": mine,
            "provisional_pusd": 0, "engine_us": round(used * HOUR_US),
        })  # fmt: skip
    connection.execute(insert(orm.GpuHourRow), rows)
    connection.execute(insert(orm.GpuHourTeamRow), shares)


def read(engine, team: str | None = None, zone: ReportingZone = UTC):
    with engine.connect() as connection:
        found = month_outlook(connection, DAY, zone, team)
    assert found.forecast is not None
    return found


def hour_of(usd_per_day: float) -> int:
    return round(usd_per_day * USD / 24)


@pytest.mark.parametrize("billing", ["reserved", "owned", "on_demand"])
def test_a_week_at_half_the_rate_makes_the_days_to_come_as_cheap(engine, billing: str) -> None:
    """Fifty-six days at $100, the last seven at $50: $800 + $350 are booked, $750 is to come."""
    changed = DAY - 7 * DAY_US
    rates = [hour_of(100), hour_of(50)]
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [
            contract(rates[0], FIRST, billing=billing),
            contract(rates[1], changed, billing=billing),
        ])  # fmt: skip
        close_hours(connection, DAY, lambda at_us: rates[at_us >= changed], used=0.5)
    found, team = read(engine), read(engine, "search")
    assert found.spent_pusd == pytest.approx(1150 * USD, abs=1000)
    assert found.forecast.expected_pusd == pytest.approx(1900 * USD, abs=1000)
    assert (found.unknown, team.unknown) == ((), ())
    assert team.forecast.expected_pusd == pytest.approx(950 * USD, abs=1000)
    assert found.forecast.high_pusd - found.forecast.low_pusd < USD // 1000


@pytest.mark.parametrize("billing", ["reserved", "on_demand"])
def test_a_rate_that_is_entered_for_later_counts_from_its_day(engine, billing: str) -> None:
    """$100 a day until the 21st, $40 from then on: ten of fifteen days."""
    rate, later_us = hour_of(100), UTC.midnight_us(date(2026, 11, 21))
    says = {"pusd_per_hour": hour_of(40), "source": "contract 8",
            "ops_seconds_per_week": 0, "ops_pusd_per_hour": 0}  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), contract(rate, FIRST, billing=billing))
        close_hours(connection, DAY, lambda _: rate, used=0.5)
        entry = ManualEntry(0, f"{RATE}chat", says, later_us, DAY - 5, "fay", "renewal")
        enter(connection, entry)
    found, team = read(engine), read(engine, "search")
    assert found.forecast.expected_pusd == pytest.approx((1500 + 500 + 400) * USD, abs=1000)
    assert team.forecast.expected_pusd == pytest.approx(1200 * USD, abs=1000)


@pytest.mark.parametrize("billing", ["reserved", "on_demand"])
def test_a_contract_that_ends_costs_nothing_behind_its_last_day(engine, billing: str) -> None:
    rate = hour_of(100)
    with engine.begin() as connection:
        ends = contract(rate, FIRST, billing=billing, until=date(2026, 11, 20))
        connection.execute(insert(orm.GpuContractRow), ends)
        close_hours(connection, DAY, lambda _: rate)
    assert read(engine).forecast.expected_pusd == pytest.approx(2000 * USD, abs=1000)


def test_days_of_25_hours_and_ops_cost_what_their_hours_do(engine) -> None:
    """Berlin's clocks change on 25 October; an hour of ops a day is $24."""
    rate = hour_of(24)
    zone = ReportingZone("Europe/Berlin")
    with engine.begin() as connection:
        ops = {"ops_seconds_per_week": 7 * 3600, "ops_pusd_per_hour": 24 * USD}
        connection.execute(insert(orm.GpuContractRow), contract(rate, FIRST, **ops))
        close_hours(connection, DAY, lambda _: rate)
    with engine.connect() as connection:
        now_us = zone.midnight_us(date(2026, 10, 20))
        found = month_outlook(connection, now_us, zone)
    assert found.forecast is not None
    assert found.forecast.expected_pusd == pytest.approx((31 * 24 + 1) * 2 * USD, abs=1000)


def test_a_pool_without_a_rate_to_come_is_named(engine) -> None:
    rate = hour_of(100)
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [
            contract(rate, FIRST), contract(None, DAY - HOUR_US),
        ])  # fmt: skip
        close_hours(connection, DAY, lambda _: rate)
    found = read(engine)
    assert found.unknown == ("chat",)
    assert found.forecast.expected_pusd == pytest.approx(1500 * USD, abs=1000)
    assert month_text(found, str).endswith("without the GPUs of `chat`, whose rate is not known.")
    assert read(engine, "nobody").unknown == ()


def test_hours_that_were_free_tell_no_pace(engine) -> None:
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [
            contract(0, FIRST, billing="on_demand"),
            contract(hour_of(100), DAY - HOUR_US, billing="on_demand"),
        ])  # fmt: skip
        close_hours(connection, DAY - HOUR_US, lambda _: 0)
    assert read(engine).unknown == ("chat",)


@pytest.mark.parametrize("billing", ["reserved", "owned", "on_demand"])
def test_gpus_that_are_free_have_a_known_rate(engine, billing: str) -> None:
    """A pool at $0 was named as one whose rate is not known."""
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [contract(0, FIRST, billing=billing)])
        close_hours(connection, DAY, lambda _: 0)
    assert (read(engine).unknown, read(engine, "search").unknown) == ((), ())
