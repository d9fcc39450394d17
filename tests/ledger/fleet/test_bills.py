"""A pool's bill: closed hours as the books have them, and the open rest."""

import itertools
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.fleet.bills import ops_pusd, pool_bill
from ledger.fleet.running import OpenHours
from ledger.queries.reads import HOUR_US, ContractVersion, HourCell, Scope

DAY = date(2026, 6, 10)
START_US = int(datetime(2026, 6, 10, tzinfo=UTC).timestamp()) * 10**6
RATE = 3_500_000_000_001  # awkward on purpose
CONTRACT = ContractVersion(
    pool="llama", gpu_type="H200", gpus=2, replicas=2, billing="reserved", pusd_per_hour=RATE,
    source="c-1", since=None, until=None, ops_seconds_per_week=3_600 * 7,
    ops_pusd_per_hour=24 * 10**12, simulated=False, recorded_us=START_US,
)  # fmt: skip
CLOSED = HourCell(
    pool="llama", start_us=START_US, hours=3, span_us=3 * HOUR_US, bill_pusd=600,
    used_pusd=100, idle_pusd=450, unavailable_pusd=50, busy_us=0, unavailable_us=HOUR_US,
    replica_us=6 * HOUR_US, last_hour_us=START_US + 2 * HOUR_US,
)  # fmt: skip
SCOPE = Scope(START_US, START_US + 4 * HOUR_US + HOUR_US // 2)


REST = OpenHours(
    "llama", START_US + 3 * HOUR_US, {"a": 70, "b": 7}, 20, 3, 3 * HOUR_US, HOUR_US, ()
)


def test_a_bill_is_closed_hours_plus_the_running_ones() -> None:
    bill = pool_bill(CONTRACT, [CLOSED, replace(CLOSED, pool="other")], SCOPE, REST)
    assert bill.bill_pusd == 600 + 100
    assert (bill.used_pusd, bill.idle_pusd, bill.unavailable_pusd) == (177, 470, 53)
    assert bill.hours == Fraction(9, 2)
    assert bill.gpu_hours == 9
    assert bill.available_share == Fraction(7, 9), "open hours count as closed ones do"
    assert bill.ops_pusd == Fraction(9, 2) * 10**12  # an hour a day at $24
    assert (bill.machine, bill.share) == (None, 1)


def test_a_first_hour_that_began_late_counts_for_as_long_as_it_was() -> None:
    cell = replace(CLOSED, span_us=2 * HOUR_US + HOUR_US // 2)
    assert pool_bill(CONTRACT, [cell], SCOPE, REST).hours == 4


def test_a_part_of_a_machine_is_a_part_of_its_gpu_hours() -> None:
    shared = replace(CONTRACT, machine="box", share_ppm=250_000)
    bill = pool_bill(shared, [CLOSED], SCOPE, REST)
    assert (bill.machine, bill.gpu_hours) == ("box", Fraction(9, 4))


def test_an_unknown_rate_has_hours_and_no_bill() -> None:
    unknown = replace(CONTRACT, pusd_per_hour=None)
    bill = pool_bill(unknown, [], SCOPE, OpenHours("llama", START_US, {}, 0, 0, 0, 0, ()))
    assert not bill.is_rated
    assert (bill.bill_pusd, bill.hours, bill.available_share) == (0, Fraction(9, 2), 1)


def test_an_ended_contract_accrues_nothing() -> None:
    ended = replace(CONTRACT, until=DAY.replace(day=9))
    bill = pool_bill(ended, [], SCOPE, OpenHours("llama", START_US, {}, 0, 0, 0, 0, ()))
    assert (bill.bill_pusd, bill.hours) == (0, 0)


def test_ops_that_are_entered_today_change_no_day_that_is_over() -> None:
    """From the next UTC day on: $24 an hour for 7 h a week before, nothing entered at first."""
    none = replace(CONTRACT, ops_seconds_per_week=0)
    entered = replace(CONTRACT, recorded_us=START_US + 5 * HOUR_US)
    day = 24 * HOUR_US
    versions = [none, entered]
    assert ops_pusd(versions, START_US - 30 * day, START_US + day) == 0
    assert ops_pusd(versions, START_US, START_US + 2 * day) == 24 * 10**12
    assert ops_pusd([entered], START_US - day, START_US) == 24 * 10**12, "the first always was"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "Europe/Berlin", "America/New_York"])
@settings(max_examples=15)
@given(
    changes=st.lists(st.tuples(st.integers(0, 60 * 24), st.integers(0, 9)), min_size=1, max_size=5)
)
def test_ops_of_the_days_of_any_zone_add_up_to_the_period(zone, changes) -> None:
    """October 2026 has a clock change in Berlin, November one in New York; Kolkata is at +5:30."""
    moments = [datetime(2026, month, day, tzinfo=ZoneInfo(zone))
               for month, days in ((10, 31), (11, 30)) for day in range(1, days + 1)]  # fmt: skip
    cuts = [round(moment.timestamp()) * 10**6 for moment in moments]
    versions = [
        replace(CONTRACT, recorded_us=cuts[0] + hour * HOUR_US, ops_pusd_per_hour=usd * 10**12 + 1)
        for hour, usd in sorted(changes)
    ]
    days = itertools.pairwise(cuts)
    parts = [ops_pusd(versions, *day) for day in days]
    assert sum(parts) == ops_pusd(versions, cuts[0], cuts[-1])
