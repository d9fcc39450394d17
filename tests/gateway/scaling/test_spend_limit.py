"""A day's rent bounds starts: what runs counts to the day's end."""

import pytest

from gateway.scaling.spend_limit import spent_pusd, starts_left
from ledger.economics.scaling_score import InstanceRent
from ledger.fleet.fleet_records import FleetInstance

HOUR = 3_600_000_000
USD = 10**12
DAY = (0, 24 * HOUR)
RENT = InstanceRent(2 * USD)


def engine(asked_h: int, gone_h: int | None = None) -> FleetInstance:
    gone_us = None if gone_h is None else gone_h * HOUR
    return FleetInstance("t", "p", 0, True, RENT, asked_h * HOUR, gone_us=gone_us)


def test_what_runs_is_counted_to_the_days_end_and_what_ended_to_its_end():
    assert spent_pusd([engine(-5)], DAY) == 48 * USD
    assert spent_pusd([engine(20), engine(3, 5)], DAY) == 12 * USD


@pytest.mark.parametrize(
    ("limit", "now_h", "left"), [(None, 0, None), (48, 0, 0), (96, 0, 1), (60, 18, 1), (0, 23, 0)]
)
def test_a_start_counts_with_its_rent_until_the_days_end(limit, now_h, left):
    limit_pusd = None if limit is None else limit * USD
    found = starts_left([engine(0)], RENT, limit_pusd, day=DAY, now_us=now_h * HOUR)
    assert found == left
