"""The month that is under way on a page: what it has cost, and what it will have cost."""

from dashboard import formatting, theme
from dashboard.data import days
from dashboard.data.reads import DashboardView
from ledger.reports.month_outlook import MonthOutlook, month_text


def show(view: DashboardView) -> None:
    """Draw one card; the interval is in it, or why there is none."""
    outlook = days.month_outlook(view)
    theme.card(
        f"This month, days of {outlook.timezone}: {_what(outlook)}",
        theme.big(figure(outlook), size="mid"),
        theme.small(month_text(outlook, formatting.money)),
        about="month",
    )


def _what(outlook: MonthOutlook) -> str:
    return "spent so far" if outlook.forecast is None else "forecast for its end"


def figure(outlook: MonthOutlook) -> str:
    """Return the expected total, or what is spent while nothing can be told."""
    if outlook.forecast is None:
        return formatting.money(outlook.spent_pusd)
    return formatting.money(outlook.forecast.expected_pusd)
