"""A pool's bill: closed hours as the books have them, and the open rest by contract."""

from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction

import pytest

from ledger.bills import live_pusd, open_from, pool_bill
from ledger.queries import HOUR_US, Contract, HourCell, Scope

DAY = date(2026, 6, 10)
START_US = int(datetime(2026, 6, 10, tzinfo=UTC).timestamp()) * 10**6
RATE = 3_500_000_000_001  # awkward on purpose
CONTRACT = Contract(
    pool="llama", gpu_type="H200", gpus=2, replicas=2, billing="reserved", pusd_per_hour=RATE,
    source="c-1", since=None, until=None, ops_seconds_per_week=3_600 * 7,
    ops_pusd_per_hour=24 * 10**12, simulated=False, recorded_us=START_US,
)  # fmt: skip
CLOSED = HourCell(
    pool="llama", start_us=START_US, hours=3, bill_pusd=600, used_pusd=100, idle_pusd=450,
    unavailable_pusd=50, busy_us=0, unavailable_us=HOUR_US, replica_us=6 * HOUR_US,
    last_hour_us=START_US + 2 * HOUR_US,
)  # fmt: skip
SCOPE = Scope(START_US, START_US + 4 * HOUR_US + HOUR_US // 2)


def test_the_open_rest_begins_after_the_last_closed_hour() -> None:
    assert open_from(CONTRACT, [CLOSED], SCOPE, first_us=0) == START_US + 3 * HOUR_US
    other = replace(CLOSED, pool="other")
    assert open_from(CONTRACT, [other], SCOPE, first_us=None) == START_US


@pytest.mark.parametrize(
    ("recorded", "since", "first", "expected"),
    [
        (5, None, None, 5),  # hours after the scope's start: the contract's record
        (5, None, 2, 2),  # attempts were there before the contract was written down
        (-9, None, -9, 0),  # never before the scope
        (-9, DAY.replace(day=11), -9, 24),  # never before the contract's first day
    ],
)
def test_without_closed_hours_it_begins_with_the_pools_life(
    recorded: int, since: date | None, first: int | None, expected: int
) -> None:
    contract = replace(CONTRACT, recorded_us=START_US + recorded * HOUR_US, since=since)
    first_us = None if first is None else START_US + first * HOUR_US
    found = open_from(contract, [], SCOPE, first_us=first_us)
    assert found == START_US + expected * HOUR_US


def test_a_bill_is_closed_hours_plus_the_running_ones() -> None:
    start = START_US + 3 * HOUR_US
    bill = pool_bill(CONTRACT, [CLOSED], SCOPE, open_from_us=start, provisional_pusd=77)
    live = live_pusd(CONTRACT, start, SCOPE.end_us)
    assert live == 3 * RATE  # 2 GPUs, an hour and a half
    assert bill.bill_pusd == 600 + live
    assert (bill.used_pusd, bill.unavailable_pusd) == (177, 50)
    assert bill.used_pusd + bill.idle_pusd + bill.unavailable_pusd == bill.bill_pusd
    assert bill.hours == Fraction(9, 2)
    assert bill.gpu_hours == 9
    assert bill.available_share == Fraction(5, 6)
    assert bill.ops_pusd == Fraction(9, 2) * 10**12  # an hour a day at $24


def test_more_charged_than_the_rest_cost_leaves_no_negative_idle() -> None:
    start = SCOPE.end_us - HOUR_US
    bill = pool_bill(CONTRACT, [], SCOPE, open_from_us=start, provisional_pusd=10**20)
    assert (bill.used_pusd, bill.idle_pusd) == (2 * RATE, 0)


def test_an_unknown_rate_has_hours_and_no_bill() -> None:
    unknown = replace(CONTRACT, pusd_per_hour=None)
    bill = pool_bill(unknown, [], SCOPE, open_from_us=START_US, provisional_pusd=0)
    assert not bill.rated
    assert (bill.bill_pusd, bill.hours) == (0, Fraction(9, 2))


def test_an_ended_contract_accrues_nothing() -> None:
    ended = replace(CONTRACT, until=DAY.replace(day=9))
    bill = pool_bill(ended, [], SCOPE, open_from_us=START_US, provisional_pusd=0)
    assert (bill.bill_pusd, bill.hours) == (0, 0)
    assert live_pusd(CONTRACT, 5, 5) == 0
