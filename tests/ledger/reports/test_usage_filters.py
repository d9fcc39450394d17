"""Filters that nobody set leave out nothing."""

from ledger.reports.usage_filters import UsageFilters


def test_filters_count_all_until_one_is_set() -> None:
    assert UsageFilters() == UsageFilters(teams=(), batch=None)
    assert UsageFilters(teams=("a",)) != UsageFilters()
