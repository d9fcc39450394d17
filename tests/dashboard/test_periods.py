"""Calendar periods are the organisation's, and those that follow each other leave nothing out."""

from datetime import UTC, date, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.periods import CALENDAR, DAYS, dated_period, length_text
from ledger.reporting_zone import ReportingZone
from ledger.spans import DAY_US, HOUR_US, Scope

ZONES = ("UTC", "Asia/Kolkata", "Europe/Berlin", "America/St_Johns")


def at(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp()) * 10**6


NOW_US = at(2026, 11, 14, 9, 30)


@pytest.mark.parametrize(
    ("name", "start", "end", "words", "hours"),
    [
        ("month", at(2026, 11, 1), NOW_US, "November 2026 so far", 720),
        ("last month", at(2026, 10, 1), at(2026, 11, 1), "October 2026", 744),
        ("quarter", at(2026, 10, 1), NOW_US, "quarter 4 of 2026 so far", None),
        ("last quarter", at(2026, 7, 1), at(2026, 10, 1), "quarter 3 of 2026", None),
    ],
)
def test_calendar_periods_in_utc(name, start, end, words, hours) -> None:
    found = dated_period(name, ReportingZone(), NOW_US)
    assert (found.start_us, found.end_us, found.words) == (start, end, words)
    assert found.month_hours == hours


def test_a_month_in_which_clocks_change_has_its_own_hours() -> None:
    assert dated_period("last month", ReportingZone("Europe/Berlin"), NOW_US).month_hours == 745
    kolkata = dated_period("last month", ReportingZone("Asia/Kolkata"), NOW_US)
    assert kolkata.start_us == at(2026, 9, 30, 18, 30)


def test_the_year_before_is_found_from_january() -> None:
    january = at(2027, 1, 3)
    assert dated_period("last month", ReportingZone(), january).words == "December 2026"
    assert dated_period("last quarter", ReportingZone(), january).words == "quarter 4 of 2026"


@pytest.mark.parametrize(
    ("name", "days", "start", "words"),
    [
        ("last month", (), at(2026, 9, 1), "September 2026"),
        (DAYS, (date(2026, 10, 1), date(2026, 10, 31)), at(2026, 9, 1), "September 2026"),
        ("last quarter", (), at(2026, 4, 1), "quarter 2 of 2026"),
        ("month", (), None, None),
    ],
)
def test_a_month_is_compared_with_the_month_before(name, days, start, words) -> None:
    """October has 31 days and was compared with September and a day of August."""
    found = dated_period(name, ReportingZone(), NOW_US, days)
    assert found.before.end_us == found.start_us
    if words is None:
        assert found.before.start_us == 2 * found.start_us - found.end_us
        assert found.before.words == "the 13 days before"
    else:
        assert (found.before.start_us, found.before.words) == (start, words)


def test_days_have_both_their_ends_and_none_to_come() -> None:
    zone = ReportingZone()
    found = dated_period(DAYS, zone, NOW_US, (date(2026, 11, 3), date(2026, 11, 5)))
    assert (found.start_us, found.end_us) == (at(2026, 11, 3), at(2026, 11, 6))
    assert found.before.start_us == at(2026, 10, 31)
    assert found.before.words == "the 3 days before"
    assert dated_period(DAYS, zone, NOW_US, (date(2026, 11, 20),)) is None
    assert dated_period(DAYS, zone, NOW_US) is None
    assert dated_period("30 d", zone, NOW_US) is None
    whole = dated_period(DAYS, zone, NOW_US, (date(2026, 10, 1), date(2026, 10, 31)))
    assert whole.month_hours == 744, "a month chosen by its days is that month"


@given(
    st.sampled_from(ZONES),
    st.integers(at(2024, 1, 1), at(2028, 1, 1)),
)
def test_what_follows_each_other_touches(zone_name, now_us) -> None:
    zone = ReportingZone(zone_name)
    for names in (("last month", "month"), ("last quarter", "quarter")):
        for first, second in pairwise(dated_period(name, zone, now_us) for name in names):
            assert first.end_us == second.start_us
    for name in set(CALENDAR) - {DAYS}:
        found = dated_period(name, zone, now_us)
        assert found.start_us < found.end_us
        assert zone.day(found.start_us)[0] == found.start_us
        days = tuple(
            zone.date_of(day.start_us) for day in zone.days(Scope(found.start_us, found.end_us))
        )
        chosen = dated_period(DAYS, zone, now_us, days)
        assert chosen.start_us == found.start_us
        assert chosen.end_us == found.end_us


def test_lengths_are_read_in_days_and_hours() -> None:
    assert [length_text(us) for us in (HOUR_US, 5 * HOUR_US, 30 * DAY_US)] == [
        "hour", "5 hours", "30 days",
    ]  # fmt: skip
