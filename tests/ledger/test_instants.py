"""Every spelling of an instant is that instant; what may mean two is refused with its fix."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from spelled_instants import EPOCH, INSTANTS, SPELLINGS, spelled

from ledger.instants import (
    DAY_US,
    InstantError,
    date_of,
    day_number,
    day_of,
    instant_us,
    time_in_days,
)

NOV_1_US = 1_793_491_200_000_000


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-01",
        " 2026-11-01 ",
        "2026-11-01T00:00Z",  # Azure, OCI
        "2026-11-01T00:00:00Z",
        "2026-11-01t00:00:00z",
        "2026-11-01T00:00:00.000Z",  # AWS
        "2026-11-01T00:00:00.000000000Z",  # nanoseconds of Parquet
        "2026-11-01T00:00:00,000Z",
        "2026-11-01 00:00:00",
        "2026-11-01 00:00:00.000",
        "2026-11-01 00:00:00 UTC",  # BigQuery
        "2026-11-01 00:00:00.000000 UTC",
        "2026-11-01 00:00:00 Etc/UTC",
        "2026-11-01 00:00:00Z",
        "2026-11-01T01:00:00+01:00",
        "2026-11-01 01:00:00.000 +0100",  # Snowflake
        "2026-11-01 01:00:00+01",  # PostgreSQL
        "2026-10-31T17:00:00-07:00",
        "2026-11-01T05:30:00+05:30",
        "2026-11-01 00:00:00 +0000 UTC",  # Go
        "2026-11-01T00:00Z[UTC]",  # Java
        "2026-11-01T00Z",
        "2026-10-31T24:00:00Z",
        "2026-11-01T00:00:00-00:00",
    ],
)
def test_spellings_of_one_instant(text):
    assert instant_us(text) == NOV_1_US
    assert day_of(NOV_1_US) == date(2026, 11, 1)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("", "empty"),
        ("11/01/2026", "meant either way"),
        ("01.11.2026 00:00", "meant either way"),
        ("1/11/26", "meant either way"),
        ("01-11-2026", "meant either way"),
        ("30.11.2026", "in an order of a country's own"),
        ("11/30/2026", "in an order of a country's own"),
        ("30-11-2026 00:00", "in an order of a country's own"),
        ("30/11/26", "meant either way"),  # or the year 2030
        ("1793491200", "no unit"),
        ("20261101", "no unit"),
        ("46327.5", "no unit"),  # a spreadsheet's day
        ("2026-11-01 00:00:00 EST", "names a zone"),
        ("2026-11-01T00:00:00 Europe/Berlin", "names a zone"),
        ("2026-11-01T00:00:00[Europe/Berlin]", "names a zone"),
        ("2026-11-01 12:00:00 AM", "names a zone"),
        ("2026-11-01T00:00:00+01:00 UTC", "an offset, and says UTC"),
        ("2026-02-29", "no such day"),
        ("2026-13-01", "no such day"),
        ("2026-11-01T24:01Z", "no such time"),
        ("2026-11-01T23:59:60Z", "no such time"),
        ("2026-11-01T00:60Z", "no such time"),
        ("2026-11-01T00:00+19:00", "no zone has such an offset"),
        ("2026-11-01T00:00+01:60", "no zone has such an offset"),
        ("2026-W44-7", "write 2026-11-01"),
        ("2026-11-1", "write 2026-11-01"),
        ("2026-11-01T0:00Z", "write 2026-11-01"),
        ("2026-11-01junk", "write 2026-11-01"),
        ("Nov 1, 2026", "write 2026-11-01"),
        ("2026-11-01T00:00:00.0000000000Z", "write 2026-11-01"),
        ("٢٠٢٦-11-01", "write 2026-11-01"),
    ],
)
def test_what_may_mean_two_instants_or_none_is_refused(text, fix):
    with pytest.raises(InstantError) as caught:
        instant_us(text)
    assert str(caught.value).startswith(repr(text))
    assert fix in str(caught.value)


@given(INSTANTS, st.sampled_from(SPELLINGS), st.integers(-14 * 60, 14 * 60))
@example(NOV_1_US, SPELLINGS[0], 60)
def test_any_instant_in_any_spelling_is_itself(at_us, spelling, offset_minutes):
    text, meant_us = spelled(at_us, spelling, offset_minutes)
    assert instant_us(text) == meant_us
    assert day_of(meant_us) == (EPOCH + timedelta(microseconds=meant_us)).date()


@given(INSTANTS, st.integers(0, 40 * DAY_US))
def test_days_of_a_period_are_those_that_have_time_in_it(start_us, length_us):
    """Against a count of the days one by one, with datetimes."""
    found = dict(time_in_days(start_us, start_us + length_us))
    start = EPOCH + timedelta(microseconds=start_us)
    end, expected = start + timedelta(microseconds=length_us), {}
    at = start
    while at < end:
        midnight = datetime(at.year, at.month, at.day, tzinfo=UTC) + timedelta(days=1)
        expected[at.date()] = (min(end, midnight) - at) // timedelta(microseconds=1)
        at = midnight
    assert found == (expected or {start.date(): 1})


def test_an_instant_of_an_aware_datetime_is_read_back():
    at = datetime(2026, 3, 29, 3, 30, tzinfo=timezone(timedelta(hours=2)))
    assert instant_us(at.isoformat()) == at.timestamp() * 1e6


@pytest.mark.parametrize("text", ["0001-01-01T00:00+01:00", "9999-12-31T23:59:59-12:00"])
def test_what_the_calendar_has_no_utc_day_for_is_refused(text):
    with pytest.raises(InstantError, match="outside of the years"):
        instant_us(text)


@given(st.dates())
def test_days_are_numbered_from_1970(day):
    assert date_of(day_number(day)) == day
    assert day_number(day) == (day - date(1970, 1, 1)).days
    assert day_of(day_number(day) * DAY_US) == day
