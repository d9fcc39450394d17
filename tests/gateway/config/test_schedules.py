"""Calendar times in their time zone: the last, the next, and what stands by two of them."""

from datetime import UTC, datetime

import pytest

from gateway.config.schedules import (
    CronSchedule,
    ScheduleError,
    restart_due_us,
    restart_next_us,
    starts_us,
    stopped_since_us,
)
from gateway.config.schema_upkeep import UpkeepSection

BERLIN = "Europe/Berlin"


def us(words: str) -> int:
    return round(datetime.fromisoformat(words).replace(tzinfo=UTC).timestamp()) * 1_000_000


def said(at_us: int | None) -> str | None:
    return None if at_us is None else f"{datetime.fromtimestamp(at_us / 1e6, UTC):%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("words", "zone", "now", "last", "following"),
    [
        ("0 4 * * SUN", "UTC", "2026-11-25T10:00:00", "11-22 04:00", "11-29 04:00"),
        ("0 4 * * SUN", "UTC", "2026-11-22T04:00:00", "11-22 04:00", "11-29 04:00"),
        ("0 4 * * SUN", "UTC", "2026-11-22T03:59:59", "11-15 04:00", "11-22 04:00"),
        ("0 7 * * MON-FRI", BERLIN, "2026-07-20T05:00:00", "07-20 05:00", "07-21 05:00"),
        ("0 7 * * MON-FRI", BERLIN, "2026-12-14T05:00:00", "12-11 06:00", "12-14 06:00"),
        # a time that daylight saving skips (29 March) and one that it repeats (25 October)
        ("30 2 * * *", BERLIN, "2026-03-29T12:00:00", "03-29 01:00", "03-30 00:30"),
        ("30 2 * * *", BERLIN, "2026-10-25T12:00:00", "10-25 00:30", "10-26 01:30"),
    ],
)
def test_the_last_and_the_next_time(words, zone, now, last, following):
    schedule = CronSchedule(words, zone)
    assert said(schedule.last_us(us(now))) == last
    assert said(schedule.next_us(us(now))) == following


def test_what_never_comes_within_a_year_is_none():
    rare = CronSchedule("0 0 29 2 *")
    assert rare.next_us(us("2026-11-25T10:00:00")) is None
    assert said(rare.next_us(us("2027-06-25T10:00:00"))) == "02-29 00:00"


@pytest.mark.parametrize(
    ("words", "zone", "message"),
    [
        ("0 4 * *", "UTC", "five fields"),
        ("@daily", "UTC", "five fields"),
        ("0 0 4 * * SUN", "UTC", "five fields"),  # seconds are not part of it
        ("0 25 * * *", "UTC", "Bad hour"),
        ("0 4 * * SONNTAG", "UTC", "Bad day-of-week"),
        ("0 4 * * *", "Berlin", "not an IANA time zone"),
    ],
)
def test_what_is_no_time_says_why(words, zone, message):
    with pytest.raises(ScheduleError, match=message):
        CronSchedule(words, zone)


OFFICE = UpkeepSection(timezone=BERLIN, stop="0 20 * * MON-FRI", start="0 7 * * MON-FRI")


@pytest.mark.parametrize(
    ("now", "since", "starts"),
    [
        ("2026-11-25T10:00:00", None, "11-26 06:00"),
        ("2026-11-25T18:59:59", None, "11-26 06:00"),
        ("2026-11-25T19:00:00", "11-25 19:00", "11-26 06:00"),
        ("2026-11-26T05:59:59", "11-25 19:00", "11-26 06:00"),
        ("2026-11-26T06:00:00", None, "11-27 06:00"),
        ("2026-11-28T12:00:00", "11-27 19:00", "11-30 06:00"),  # a weekend
    ],
)
def test_a_pool_is_stopped_from_each_stop_to_the_start_after_it(now, since, starts):
    assert said(stopped_since_us(OFFICE, us(now))) == since
    assert said(starts_us(OFFICE, us(now))) == starts


def test_a_pool_without_times_is_never_stopped_and_never_due():
    now_us = us("2026-11-25T10:00:00")
    nothing = UpkeepSection()
    assert not nothing.any
    assert stopped_since_us(nothing, now_us) is starts_us(nothing, now_us) is None
    assert restart_due_us(nothing, now_us) is restart_next_us(nothing, now_us) is None
    weekly = UpkeepSection(restart="0 4 * * SUN")
    assert weekly.any
    assert said(restart_due_us(weekly, now_us)) == "11-22 04:00"
    assert said(restart_next_us(weekly, now_us)) == "11-29 04:00"
