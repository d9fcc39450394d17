"""Minutes of the week are those in which the router's hours are active, and they add up by zone."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.checks.hours_of_week import WEEK_MINUTES, covers_hours, minutes_of
from gateway.config.schema_policies import TimesSection
from router.hours import DAYS, WeeklyHours, minute_of

CLOCKS = st.integers(0, 23).map("{:02}:00".format)
MONDAY = datetime(2026, 11, 2, tzinfo=UTC)


def hours(starts="00:00", ends="24:00", *days, timezone="UTC"):
    return TimesSection(starts=starts, ends=ends, days=days, timezone=timezone)


@settings(max_examples=25)
@given(CLOCKS, CLOCKS, st.sets(st.sampled_from(DAYS)))
def test_they_are_the_minutes_in_which_the_rule_acts(starts, ends, days) -> None:
    minutes = minutes_of(hours(starts, ends, *days))
    acts = WeeklyHours(
        minute_of(starts), minute_of(ends), UTC, frozenset(DAYS.index(day) for day in days)
    )
    for minute in range(0, WEEK_MINUTES, 30):
        at_us = int((MONDAY + timedelta(minutes=minute)).timestamp()) * 10**6
        assert acts.is_active(at_us) is (minute in minutes)


@pytest.mark.parametrize(
    ("upper", "lower", "covers"),
    [
        ([hours()], [], True),
        ([hours("06:00", "20:00"), hours("20:00", "06:00")], [], True),
        ([hours("06:00", "20:00"), hours("20:00", "05:59")], [], False),
        ([hours("06:00", "20:00"), hours("20:00", "06:00", timezone="Asia/Tokyo")], [], False),
        ([hours("06:00", "12:00"), hours("12:00", "20:00")], [hours("10:00", "15:00")], True),
        ([hours("06:00", "12:00")], [hours("10:00", "15:00")], False),
        ([hours("00:00", "24:00", *DAYS[:5]), hours("00:00", "24:00", "sat", "sun")], [], True),
        ([], [], False),
        ([], [hours()], False),
    ],
)
def test_hours_of_one_zone_add_up(upper, lower, covers) -> None:
    assert covers_hours(upper, lower) is covers
