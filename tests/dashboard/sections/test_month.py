"""The spend page shows the month's end, or says from when on it will."""

from dashboard.sections.month import figure
from ledger.economics.month_forecast import MonthForecast
from ledger.reports.month_outlook import MonthOutlook

DOLLAR = 10**12


def test_the_figure_is_the_expected_end_or_what_is_spent() -> None:
    known = MonthOutlook(0, 1, "UTC", DOLLAR, MonthForecast(9 * DOLLAR, 1, 2, 3, 4))
    assert figure(known) == "$9.00"
    assert figure(MonthOutlook(0, 1, "UTC", DOLLAR, None)) == "$1.00"


def test_the_page_says_it(month, page, text_of) -> None:
    said = text_of(page("spend", month.url))
    ends = "forecast for its end" if "at its end" in said else "spent so far"
    assert f"This month, days of UTC: {ends}" in said, "the figure below is no spending of today"
    assert "at its end (" in said or "whole days in the ledger" in said
