"""What every page has around it: the sidebar's choices, the refresh, and one place for absence.

A page is a module with `show(view)`. The frame reads the sidebar, runs the page as a fragment that
repeats, and turns a ledger that is missing or away into a sentence instead of a stack trace.
"""

from contextlib import nullcontext
from types import ModuleType
from typing import Any

import streamlit as st

from dashboard import data, words
from dashboard.data import View

EVERYONE = "All teams"
REFRESH_S = 5


def page(module: ModuleType, url: str, title: str, icon: str, *, default: bool = False) -> Any:
    def run() -> None:
        st.title(f"Are the {_own(url)} worth it?" if default else title, anchor=False)
        _framed(module, url)

    path = module.__name__.rpartition("page_")[2]
    return st.Page(run, title=title, icon=icon, url_path=path, default=default)


def _own(url: str) -> str:
    try:
        return data.hardware(url).many
    except data.AWAY:  # the page says so
        return words.GPU.many


def _framed(module: ModuleType, url: str) -> None:
    with st.sidebar:
        period = st.segmented_control(
            "Period", list(data.PERIODS), default="30 d", required=True, key="period"
        )
        now_us = data.rounded_now_us(data.PERIODS[period])
        try:
            names = data.teams(url, now_us - data.PERIODS[period], now_us)
        except data.AWAY as error:
            _away(url, error)
            return
        team = st.selectbox("Team", [EVERYONE, *names], key="team")
        live = st.toggle("Refresh by itself", value=True, key="live")

    @st.fragment(run_every=REFRESH_S if live else None)
    def body() -> None:
        at_us = data.rounded_now_us(data.PERIODS[period])
        view = View(url, period, None if team == EVERYONE else team, at_us)
        shown = (module.__name__, period, team)
        first = st.session_state.get("shown") != shown
        try:
            with st.spinner("Reading the ledger ...") if first else nullcontext():
                module.show(view)
            _as_of(view)
            st.session_state["shown"] = shown
        except data.AWAY as error:
            _away(url, error)

    body()


def _as_of(view: View) -> None:
    fresh = data.survey(view).freshness
    applied = "no journal applied so far"
    if fresh.applied_us is not None:
        applied = f"journals applied {words.ago(fresh.applied_us, view.now_us)}"
    held = f"; {fresh.quarantined} records quarantined" if fresh.quarantined else ""
    st.caption(f"As of {words.moment(view.now_us)}; {applied}{held}. Read-only.")


def _away(url: str, error: BaseException) -> None:
    kind = "file" if url.startswith("sqlite") else "server"
    st.warning(
        f"The ledger cannot be read: its {kind} is not there, not reachable, or was never filled. "
        "Nothing is lost: requests are served and journaled meanwhile. Start the gateway with "
        "`breakeven serve`; this page comes back by itself.",
        icon=":material/database_off:",
    )
    with st.expander("What the database said"):
        st.code(str(getattr(error, "orig", None) or error), language=None)
