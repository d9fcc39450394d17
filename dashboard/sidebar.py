"""Display settings in the sidebar: time zone of times and currency of amounts.

Both are in the URL and optional: times are in the browser's zone unless chosen; amounts are in
dollars, and another currency is offered once its rate is entered.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from zoneinfo import available_timezones

import streamlit as st

from dashboard import display, formatting
from dashboard.data import days, entries
from dashboard.data.reads import DashboardView
from dashboard.display import USD, UTC_NAME, DisplaySettings
from ledger.currencies import Currency, currencies
from ledger.manual_entries import latest_us


def display_settings(view: DashboardView) -> DisplaySettings:
    """Draw the display settings and return them."""
    left, right = st.columns([1.6, 1])
    with left:
        zone = st.selectbox(
            "Times in", _zones(st.context.timezone), key="zone", bind="query-params",
            help="The browser's zone, unless chosen. Days and months are the organisation's: "
            f"{days.reporting_zone(view).name}.",
        )  # fmt: skip
    known = {currency.code: currency for currency in quoted_currencies(view)}
    with right:
        code = st.selectbox(
            "Money in", [USD, *known], key="money", bind="query-params",
            help="Other money is offered once its rate is entered, on Rates and teams.",
        )  # fmt: skip
    return DisplaySettings(zone or UTC_NAME, known.get(code))


def quoted_currencies(view: DashboardView) -> list[Currency]:
    """Return the currencies with an entered rate."""
    found = entries.quotes(view)
    return currencies(found, latest_us(found, view.now_us))


def display_notes(view: DashboardView) -> list[str]:
    """Return a note on every display setting that differs from the ledger's."""
    how = display.now()
    lines = []
    theirs = days.reporting_zone(view).name
    if how.zone != theirs:
        lines.append(f"Times are those of {how.zone}; days and months are those of {theirs}.")
    if how.money is not None:
        today = formatting.instant(view.now_us).date()
        rate = replace(how.money, source=formatting.quote(how.money.source))  # lines are markdown
        lines.append(f"Amounts are in {how.code}: {of_rate(rate, today)}. {_DOLLARS}")
    return lines


_DOLLARS = "The books, exports, reports and whatever is entered stay in dollars."


def of_rate(currency: Currency, today: date) -> str:
    """Return the rate with its day and source; an old one is marked."""
    rate = f"{float(currency.per_usd):,.10g}"  # without an exponent, as rates are below 10^10
    told = f"{rate} a dollar on {currency.day:%d %b %Y}, says {currency.source}"
    if currency.stale(today):
        told += f"; **{currency.age_days(today)} days old**: enter a newer rate"
    return told


def _zones(browser: str | None) -> Sequence[str]:
    """Return the browser's time zone first, then UTC, then all others of this host."""
    first = list(dict.fromkeys([display.known_zone(browser), UTC_NAME]))
    return [*first, *(place for place in _places() if place not in first)]


@cache
def _places() -> tuple[str, ...]:
    """Return the host's time zones, cached because listing them reads hundreds of files."""
    named = sorted(
        available_timezone
        for available_timezone in available_timezones()
        if "/" in available_timezone
    )
    return tuple(name for name in named if not name.startswith(("Etc/", "SystemV/")))
