"""Section of what is outside a period's sums: time before the books, cache, imported spending."""

import streamlit as st

from dashboard import formatting, theme
from dashboard.data import days
from dashboard.data.cache_hits import cached
from dashboard.data.reads import DashboardView
from dashboard.data.spend_history import history
from ledger.queries.cache_hits import CacheTotal
from ledger.spans import HOUR_US
from ledger.spend_history import HistoryTotal


def show(view: DashboardView) -> None:
    """Draw them if there are any."""
    show_begin(view)
    _show_cache(cached(view))
    for total in history(view):
        _show_history(total)


def show_begin(view: DashboardView) -> None:
    """Say that the books begin within the period: what was spent before is unknown, not $0."""
    scope, first_us = view.scope, days.begin_us(view)
    if first_us is None or not scope.start_us + HOUR_US < first_us < scope.end_us:
        return
    whole = scope.end_us - scope.start_us
    st.caption(
        f"The books begin at {formatting.moment(first_us, '%d %b %Y %H:%M')}: they have "
        f"{(scope.end_us - first_us) / HOUR_US:,.1f} of this period's {whole / HOUR_US:,.0f} "
        "hours. What was spent before is not known here."
    )


def _show_cache(found: CacheTotal) -> None:
    if not found.hits:
        return
    parts = [f"{formatting.plural(found.hits, 'request')} got an earlier answer"]
    if found.engine_us:
        parts.append(f"own engines were spared {formatting.count(found.engine_us // 10**6)} s")
    if found.unpriced:
        parts.append(f"{formatting.count(found.unpriced)} of APIs have no price")
    figure = theme.big(formatting.money(found.api_pusd), size="mid")
    theme.card("Avoided by the response cache", figure, about="cache")
    st.caption("; ".join(parts) + ".")


def _show_history(total: HistoryTotal) -> None:
    words = (
        f"Imported from {total.source}: {formatting.money(total.sums.spend_pusd)} for "
        f"{formatting.plural(total.sums.requests, 'request')} on days from {total.first_day} to "
        f"{total.last_day} (UTC), in none of the sums here."
    )
    st.caption(words.replace("$", r"\$"))
