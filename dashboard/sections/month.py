"""Card of the current month: cost so far and forecast."""

from dashboard import formatting, theme
from dashboard.data import days
from dashboard.data.reads import DashboardView
from ledger.reports.month_outlook import MonthOutlook, month_text


def show(view: DashboardView) -> None:
    """Draw one card with the forecast's interval, or the reason why there is none."""
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
    """Return the expected total, or the cost so far while there is no forecast."""
    if outlook.forecast is None:
        return formatting.money(outlook.spent_pusd)
    return formatting.money(outlook.forecast.expected_pusd)
