"""A period's report is sent once, by one host, and again while nobody took it."""

from datetime import UTC, datetime

import pytest

from ledger.reporting_zone import ReportingZone
from ledger.reports.report_turns import LEASE_US, ReportTurn, claim_turn, last_period, mark_sent


def at(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp()) * 10**6


NOW_US = at(2026, 11, 18, 9)  # a Wednesday


@pytest.mark.parametrize(
    ("every", "start", "end"),
    [
        ("day", (2026, 11, 17), (2026, 11, 18)),
        ("week", (2026, 11, 9), (2026, 11, 16)),
        ("month", (2026, 10, 1), (2026, 11, 1)),
    ],
)
def test_the_newest_period_that_is_over_is_sent(every, start, end) -> None:
    found = last_period(ReportingZone(), every, NOW_US)
    assert (found.start_us, found.end_us) == (at(*start), at(*end))


def test_days_are_the_organisations() -> None:
    found = last_period(ReportingZone("Asia/Kolkata"), "day", at(2026, 11, 18, 19))
    assert found.end_us == at(2026, 11, 18, 18, 30)
    clocks = last_period(ReportingZone("Europe/Berlin"), "day", at(2026, 10, 26, 9))
    assert (clocks.end_us - clocks.start_us) // (3600 * 10**6) == 25


def test_one_host_sends_and_another_follows_after_its_lease(engine) -> None:
    first = claim_turn(engine, "weekly", "mail", 5, at_us=NOW_US)
    assert first == ReportTurn("weekly", "mail", 5)
    assert claim_turn(engine, "weekly", "mail", 5, at_us=NOW_US) is None
    assert claim_turn(engine, "weekly", "folder", 5, at_us=NOW_US) is not None, "its own turn"
    later_us = NOW_US + LEASE_US
    second = claim_turn(engine, "weekly", "mail", 5, at_us=later_us)
    assert second == ReportTurn("weekly", "mail", 5, 2)
    assert claim_turn(engine, "weekly", "mail", 5, at_us=later_us + LEASE_US) is None, "it waits"
    mark_sent(engine, second, at_us=later_us)
    assert claim_turn(engine, "weekly", "mail", 5, at_us=NOW_US + 10**12) is None
    assert second.id == "weekly:mail:0"
