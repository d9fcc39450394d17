"""What a key is told: sums of its own attempts, and spans of a day and a month."""

from datetime import UTC, datetime

from gateway.control.key_view import NOTHING, SpendSum, add_spend, spans
from ledger.queries.tags import KeySpend
from ledger.reporting_zone import ReportingZone

AT_US = int(datetime(2026, 11, 27, 18, 30, tzinfo=UTC).timestamp()) * 10**6


def start(name: str, zone: str = "UTC") -> datetime:
    found = spans(AT_US, ReportingZone(zone))[name]
    return datetime.fromtimestamp(found.start_us / 1e6, UTC)


def test_a_day_and_a_month_begin_at_midnight() -> None:
    assert start("day") == datetime(2026, 11, 27, tzinfo=UTC)
    assert start("month") == datetime(2026, 11, 1, tzinfo=UTC)
    assert start("day", "Asia/Kolkata") == datetime(2026, 11, 27, 18, 30, tzinfo=UTC)
    assert start("month", "Asia/Kolkata") == datetime(2026, 10, 31, 18, 30, tzinfo=UTC)


def test_own_engines_and_apis_are_added_and_what_has_no_price_is_counted() -> None:
    rows = [
        KeySpend("search", "k", "api", 2, 10, 20, 300, 1),
        KeySpend("search", "k", "own", 1, 5, 5, 7, 0),
    ]
    found = add_spend(iter(rows))
    assert found == SpendSum(3, 15, 25, 307, 1)
    assert found.document["cost_usd"] == "0.000000000307"
    assert found.document["unpriced_attempts"] == 1
    assert add_spend(iter([])) is NOTHING
