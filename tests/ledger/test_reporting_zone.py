"""Days and months of a zone leave nothing out and share nothing, also where clocks change."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.database import make_engine, migrate
from ledger.reporting_zone import (
    UTC_DAYS,
    ReportingZone,
    declare_zone,
    fold_days,
    reporting_zone,
)
from ledger.spans import DAY_US, HOUR_US, Scope

# The change of clocks of spring and of autumn lies within what is drawn.
ZONES = ["UTC", "Asia/Kolkata", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]
FIRST_US = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 10**6
instants = st.integers(FIRST_US, FIRST_US + 366 * DAY_US)


@given(zone=st.sampled_from(ZONES), start_us=instants, hours=st.integers(1, 24 * 70))
def test_the_days_of_a_span_are_the_span(zone: str, start_us: int, hours: int) -> None:
    scope = Scope(start_us, start_us + hours * HOUR_US)
    days = list(ReportingZone(zone).days(scope))
    assert [days[0].start_us, days[-1].end_us] == [scope.start_us, scope.end_us]
    for day, following in pairwise(days):
        assert day.end_us == following.start_us
        at = datetime.fromtimestamp(following.start_us / 1e6, ZoneInfo(zone))
        assert (at.hour, at.minute, at.second) == (0, 0, 0)


@given(zone=st.sampled_from(ZONES), at_us=instants)
def test_an_instant_lies_in_its_day_and_month(zone: str, at_us: int) -> None:
    of = ReportingZone(zone)
    start_us, end_us = of.day(at_us)
    assert start_us <= at_us < end_us
    assert of.date_of(at_us) == of.date_of(start_us)
    assert of.midnight_us(of.date_of(at_us)) == start_us
    first_us, last_us = of.month(at_us)
    assert first_us <= start_us < end_us <= last_us
    assert of.month_named(f"{of.date_of(at_us):%Y-%m}") == (first_us, last_us)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("America/New_York", date(2026, 11, 1), 25),
        ("Asia/Kolkata", date(2026, 10, 25), 24),
    ],
)
def test_a_day_is_as_long_as_its_clocks_say(zone: str, day: date, hours: int) -> None:
    start_us, end_us = ReportingZone(zone).day(ReportingZone(zone).midnight_us(day))
    assert end_us - start_us == hours * HOUR_US


@pytest.mark.parametrize("text", ["2026-13", "2026", "26-01", "2026-1x", "2026-11-01"])
def test_what_is_no_month_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a month"):
        UTC_DAYS.month_named(text)


def test_items_are_folded_by_day() -> None:
    zone = ReportingZone("Asia/Kolkata")
    midnight = zone.midnight_us(date(2026, 6, 2))
    items = [midnight, midnight - 1, midnight + 5]
    assert fold_days(items, zone, lambda item: item) == {
        zone.midnight_us(date(2026, 6, 1)): [midnight - 1],
        midnight: [midnight, midnight + 5],
    }


def test_the_books_keep_the_zone_that_was_declared_last(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    migrate(url)
    engine = make_engine(url)
    with engine.begin() as connection:
        assert reporting_zone(connection) == UTC_DAYS
        for at_us, name in ((1, "Europe/Berlin"), (2, "Europe/Berlin"), (3, "Asia/Kolkata")):
            declare_zone(connection, name, at_us)
            assert reporting_zone(connection).name == name
        said = connection.exec_driver_sql("SELECT count(*) FROM entered").scalar_one()
        assert said == 2
        declare_zone(connection, "UTC", 4)
        assert reporting_zone(connection) == UTC_DAYS
    engine.dispose()


def test_negative_control_days_of_24_hours_miss_a_change_of_clocks() -> None:
    """What cuts every 24 hours is an hour off after the change."""
    zone = ReportingZone("Europe/Berlin")
    start_us = zone.midnight_us(date(2026, 3, 28))
    naive = [start_us + number * DAY_US for number in range(4)]
    right = [zone.midnight_us(date(2026, 3, 28) + timedelta(days=number)) for number in range(4)]
    assert naive[:2] == right[:2]
    assert naive[2:] != right[2:]
