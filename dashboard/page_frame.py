"""Frame of every page: sidebar, automatic refresh, and one place for errors.

A page is a module with `show(view)`. The frame reads the sidebar, runs the page as a repeating
fragment, and shows a sentence instead of a stack trace if the ledger is missing or unavailable.
Choices are in the URL: they survive a change of page and a reload, and can be shared.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import date, timedelta
from types import ModuleType
from typing import Any

import streamlit as st

from dashboard import confirmation, display, formatting, sidebar, sign_in
from dashboard.data import days, reads
from dashboard.data.reads import DashboardView
from dashboard.page_choices import EVERYONE, USUAL
from dashboard.periods import CALENDAR, DAYS, dated_period
from dashboard.viewer import Viewer, ViewerScope, Who
from ledger.queries.reads import Freshness
from ledger.writing.lag import WriterLag

REFRESH_S = 5
CURRENT_US = 15 * 10**6  # maximum age of a working writer's last check


@dataclass(frozen=True, slots=True)
class PageSpec:
    """A page and its place. `fleet` is the note of a page that always covers all teams."""

    module: ModuleType
    title: str
    icon: str
    reach: ViewerScope
    fleet: str | None = None
    default: bool = False


def page(place: PageSpec, url: str, who: Who) -> Any:
    def run() -> None:
        base = DashboardView(url, USUAL, None, reads.rounded_now_us(0), who=who)
        with sign_in.guard_page():
            title = f"Verdict on own {_own(base)}" if place.default else place.title
            st.title(title, anchor=False)
            _show_frame(place, base)

    return st.Page(
        run, title=place.title, icon=place.icon, url_path=_path(place), default=place.default
    )


def refused_page(place: PageSpec, viewer: Viewer) -> Any:
    """Return the hidden page that viewers without access see at its URL."""

    def run() -> None:
        st.title(place.title, anchor=False)
        teams = f" of {', '.join(viewer.teams)}" if viewer.teams else ""
        sign_in.refuse(
            f"This page shows {place.reach.value}, and is not for a {viewer.role}{teams}. Who "
            "keeps the dashboard's access file gives roles."
        )

    return st.Page(run, title=place.title, url_path=_path(place), visibility="hidden")


def _path(place: PageSpec) -> str:
    return place.module.__name__.rpartition(".")[2]


def _own(view: DashboardView) -> str:
    try:
        return reads.hardware(view).many
    except reads.AWAY:  # the page says so
        return formatting.GPU.many


def _show_frame(place: PageSpec, base: DashboardView) -> None:
    module, fleet, url = place.module, place.fleet, base.url
    with st.sidebar:
        choice = _period(base)
        try:
            options = _teams(choice.of(base))
        except reads.AWAY as error:
            _show_unavailable(url, error)
            return
        team = st.selectbox("Team", options, key="team", bind="query-params") or options[0]
        how = sidebar.display_settings(choice.of(base))
        live = st.toggle("Refresh by itself", value=True, key="live", bind="query-params")

    @st.fragment(run_every=REFRESH_S if live else None)
    def body() -> None:
        with sign_in.guard_page(), display.read_as(how):
            drawn()

    def drawn() -> None:
        whole = team == EVERYONE or (fleet is not None and base.viewer.sees_house)
        item = None if whole else team
        shown = (module.__name__, choice, team)
        first = st.session_state.get("shown") != shown
        if first:
            confirmation.clear_outcomes()
        try:
            view = replace(choice.of(base), team=item)
            if fleet and whole and team != EVERYONE:
                st.caption(
                    f"Of all teams: {fleet.format(own=_own(base), team=formatting.quote(team))}."
                )
            with st.spinner("Reading the ledger ...") if first else nullcontext():
                module.show(view)
            _as_of(view)
            st.session_state["shown"] = shown
        except reads.AWAY as error:
            _show_unavailable(url, error)

    body()


@dataclass(frozen=True, slots=True)
class PeriodChoice:
    """The chosen period; a calendar period is recomputed each time, so that it advances."""

    name: str
    days: tuple[date, ...] = ()

    def of(self, base: DashboardView) -> DashboardView:
        """Return the view of this period as of now; may raise the errors of `reads.AWAY`."""
        if self.name in reads.PERIODS:
            now_us = reads.rounded_now_us(reads.PERIODS[self.name])
            return replace(base, period=self.name, now_us=now_us)
        now_us = reads.rounded_now_us(reads.PERIODS[USUAL])
        zone = days.reporting_zone(base)
        found = dated_period(self.name, zone, now_us, self.days)
        return replace(base, period=self.name, now_us=now_us, dated=found)


def _period(base: DashboardView) -> PeriodChoice:
    """Draw the period selection; unreadable or missing choices give the default."""
    name = st.segmented_control(
        "Period", [*reads.PERIODS, *CALENDAR], default=USUAL, required=True, key="period",
        bind="query-params",
        help="Months, quarters and days are the organisation's; one that is not over ends now.",
    )  # fmt: skip
    name = name or USUAL  # `?period=` chooses none
    if name != DAYS:
        return PeriodChoice(name)
    try:
        today = days.reporting_zone(base).date_of(base.now_us)
    except reads.AWAY:  # the page says so
        return PeriodChoice(USUAL)
    found = st.date_input(
        "From and to", value=(today - timedelta(days=6), today), max_value=today, key="days",
        bind="query-params",
    )  # fmt: skip
    chosen = tuple(found) if isinstance(found, tuple) else (found,)
    if dated_period(DAYS, days.reporting_zone(base), base.now_us, chosen) is None:
        st.caption("Choose a first and a last day.")
        return PeriodChoice(USUAL)
    return PeriodChoice(DAYS, chosen)


def _teams(view: DashboardView) -> Sequence[str]:
    """Return the selectable teams; a viewer of some teams sees no other, whatever the URL."""
    own = view.viewer.teams
    if own is not None:
        if st.query_params.get("team") not in (None, *own):
            del st.query_params["team"]
        if st.session_state.get("team") not in own:
            st.session_state.pop("team", None)
        return own
    stays = [st.session_state.get("team"), st.query_params.get("team")]  # without traffic, too
    return [EVERYONE, *sorted({*reads.teams(view), *filter(None, stays)} - {EVERYONE})]


def _as_of(view: DashboardView) -> None:
    fresh = reads.freshness(view)
    applied = books_status(fresh, reads.lag(), view.now_us)
    held = f"; {fresh.quarantined} records quarantined" if fresh.quarantined else ""
    st.caption(
        f"As of {formatting.moment(view.now_us)}; {applied}{held}."
        + "".join(f" {line}" for line in sidebar.display_notes(view))
    )


def books_status(fresh: Freshness, lag: WriterLag | None, now_us: int) -> str:
    """Return how current the ledger is; hours without a request are not a delay."""
    if lag is None:  # the writer is on another host: only what it left in the books is known
        if fresh.applied_us is None:
            return "no journal applied so far"
        return f"the last record was applied {formatting.ago(fresh.applied_us, now_us)}"
    if not lag.backlog_bytes and not lag.away and now_us - lag.applied_us <= CURRENT_US:
        return "everything journaled is applied"
    text = f"journals applied as they were {formatting.ago(lag.applied_us, now_us)}"
    if lag.backlog_bytes:
        text += f", {formatting.plural(lag.backlog_bytes, 'byte')} to go"
    return text + (", the ledger cannot be written" if lag.away else "")


def _show_unavailable(url: str, error: BaseException) -> None:
    kind = "file" if url.startswith("sqlite") else "server"
    st.warning(
        f"The ledger cannot be read: its {kind} is not there, not reachable, or was never filled. "
        "Nothing is lost: requests are served and journaled meanwhile. Start the gateway with "
        "`breakeven serve`; this page comes back by itself.",
        icon=":material/database_off:",
    )
    with st.expander("What the database said"):
        st.code(str(getattr(error, "orig", None) or error), language=None)
