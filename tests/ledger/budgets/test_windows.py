from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.budgets.windows import WindowError, window_at, zone_named

# Zones that skip midnight, repeat hours around it, jump half hours or dropped a whole day.
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Havana",
    "Africa/Cairo",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Apia",
]
INSTANTS = st.integers(
    int(datetime(2000, 1, 1, tzinfo=UTC).timestamp()),
    int(datetime(2037, 1, 1, tzinfo=UTC).timestamp()),
)


def at(zone, *fields, fold=0):
    return int(datetime(*fields, tzinfo=ZoneInfo(zone), fold=fold).timestamp())


@given(st.sampled_from(["day", "month"]), st.sampled_from(ZONES), INSTANTS)
def test_windows_partition_time(period, zone, at_s):
    window = window_at(period, zone, at_s)
    assert window.start_s <= at_s < window.end_s
    assert window_at(period, zone, window.start_s) == window
    assert window_at(period, zone, window.end_s - 1) == window
    assert window_at(period, zone, window.end_s).start_s == window.end_s


@given(st.sampled_from(ZONES), INSTANTS)
def test_a_month_begins_with_one_of_its_days(zone, at_s):
    month = window_at("month", zone, at_s)
    assert window_at("day", zone, month.start_s).start_s == month.start_s
    assert window_at("day", zone, month.end_s).start_s == month.end_s


@pytest.mark.parametrize(
    ("day", "hours"), [((2026, 3, 29), 23), ((2026, 10, 25), 25), ((2026, 10, 26), 24)]
)
def test_days_are_as_long_as_the_clock_makes_them(day, hours):
    window = window_at("day", "Europe/Berlin", at("Europe/Berlin", *day, 12))
    assert window.end_s - window.start_s == hours * 3600


def test_both_passes_of_a_repeated_hour_are_the_same_day():
    first = at("Europe/Berlin", 2026, 10, 25, 2, 30)
    second = at("Europe/Berlin", 2026, 10, 25, 2, 30, fold=1)
    assert second - first == 3600
    assert window_at("day", "Europe/Berlin", first) == window_at("day", "Europe/Berlin", second)


def test_a_skipped_midnight_starts_at_the_first_instant_of_the_date():
    # Sao Paulo, 2018-11-04: 00:00 does not exist, the day begins at 01:00 (-02:00).
    window = window_at("day", "America/Sao_Paulo", at("America/Sao_Paulo", 2018, 11, 4, 12))
    assert window.start_s == at("America/Sao_Paulo", 2018, 11, 4, 1)


@pytest.mark.parametrize(
    ("fields", "days"), [((2026, 2, 10), 28), ((2028, 2, 29), 29), ((2026, 12, 31), 31)]
)
def test_months(fields, days):
    window = window_at("month", "UTC", at("UTC", *fields))
    assert window.end_s - window.start_s == days * 86_400


def test_unknown_words_are_refused():
    with pytest.raises(WindowError, match="week"):
        window_at("week", "UTC", 0)
    for name in ("Mars/Olympus", "../etc/passwd", ""):
        with pytest.raises(WindowError, match="time zone"):
            zone_named(name)
