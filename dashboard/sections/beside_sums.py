"""Section of figures outside a period's sums: response cache, imported spending."""

import streamlit as st

from dashboard import formatting, theme
from dashboard.data.cache_hits import cached
from dashboard.data.reads import DashboardView
from dashboard.data.spend_history import history
from ledger.queries.cache_hits import CacheTotal
from ledger.spend_history import HistoryTotal


def show(view: DashboardView) -> None:
    """Draw them if there are any."""
    _show_cache(cached(view))
    for total in history(view):
        _show_history(total)


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
