"""The local clock decides: over midnight, on the right days, through both changes of the clocks."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from router.hours import DAYS, RuleCalendar, WeeklyHours, minute_of

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = (minute_of("22:00"), minute_of("06:00"))


def at(text: str, zone=UTC, fold=0) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp()) * 10**6


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("2026-11-20T21:59:59", False),  # a Friday
        ("2026-11-20T22:00:00", True),
        ("2026-11-21T00:00:00", True),
        ("2026-11-21T05:59:59", True),  # still Friday's night
        ("2026-11-21T06:00:00", False),
        ("2026-11-21T22:30:00", False),  # Saturday's own night is not asked for
        ("2026-11-20T05:00:00", False),  # nor is Thursday's
    ],
)
def test_a_night_belongs_to_the_day_on_which_it_begins(text, inside):
    friday = WeeklyHours(*NIGHT, BERLIN, frozenset({DAYS.index("fri")}))
    assert friday.is_active(at(text, BERLIN)) is inside


@pytest.mark.parametrize(
    ("text", "zone", "inside"),
    [
        ("2026-07-01T08:30", UTC, True),  # 10:30 in Berlin's summer
        ("2026-12-01T08:30", UTC, True),  # 9:30 in its winter
        ("2026-07-01T07:00", UTC, True),
        ("2026-12-01T07:30", UTC, False),
        ("2026-12-01T16:59", BERLIN, True),
        ("2026-12-01T17:00", BERLIN, False),
    ],
)
def test_hours_are_those_of_the_zone(text, zone, inside):
    assert (
        WeeklyHours(minute_of("09:00"), minute_of("17:00"), BERLIN).is_active(at(text, zone))
        is inside
    )


def test_an_hour_that_is_skipped_is_not_there_and_one_that_comes_twice_counts_twice():
    early = WeeklyHours(minute_of("02:15"), minute_of("02:45"), BERLIN)
    spring = range(at("2026-03-29T00:00", BERLIN), at("2026-03-30T00:00", BERLIN), 60_000_000)
    autumn = range(at("2026-10-25T00:00", BERLIN), at("2026-10-26T00:00", BERLIN), 60_000_000)
    assert (len(spring), len(autumn)) == (23 * 60, 25 * 60)
    assert sum(early.is_active(us) for us in spring) == 0
    assert sum(early.is_active(us) for us in autumn) == 60
    over = WeeklyHours(minute_of("01:30"), minute_of("03:30"), BERLIN)
    assert sum(over.is_active(us) for us in spring) == 60


def test_a_whole_week_adds_up():
    """Each minute of a week is in exactly one of a day's and a night's windows."""
    day, night = WeeklyHours(360, 1320, BERLIN), WeeklyHours(1320, 360, BERLIN)
    whole = WeeklyHours(0, 1440, BERLIN)
    start = at("2026-10-20T00:00", BERLIN)
    for us in range(start, start + 7 * 86_400 * 10**6, 7 * 60 * 10**6):
        assert (day.is_active(us), night.is_active(us)) in ((True, False), (False, True))
        assert whole.is_active(us)


def test_a_calendar_is_any_of_its_windows_and_looks_once_a_minute():
    looked = []

    class CountedHours(WeeklyHours):
        def is_active(self, wall_us):
            looked.append(wall_us)
            return WeeklyHours.is_active(self, wall_us)

    calendar = RuleCalendar([CountedHours(0, 60), CountedHours(120, 180)])
    base = at("2026-11-20T02:30")
    assert calendar.is_active(base)
    assert calendar.is_active(base + 29_000_000)
    assert len(looked) == 2
    assert not calendar.is_active(base + 30 * 60 * 10**6)
    assert RuleCalendar([]).is_active(base)


@pytest.mark.parametrize("text", ["", "7:00", "24:01", "12:60", "1200", "ab:cd", "12:0x", "-1:00"])
def test_what_is_no_clock(text):
    with pytest.raises(ValueError):
        minute_of(text)
