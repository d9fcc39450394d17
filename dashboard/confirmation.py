"""Changes from a page: shown to permitted people, confirmed, sent, and reported.

The gateway checks permission again. A change has two steps: a button requests it, and its effect is
shown with yes and no below. `NAME` is the change's name; its state and its buttons' keys begin with
it. The outcome stays until the next change or another page.
"""

from typing import Any, NoReturn

import streamlit as st

from dashboard import admin_client
from dashboard.admin_client import AdminClient, AdminRefused, AdminUnavailable
from dashboard.data import reads
from dashboard.data.reads import DashboardView
from ledger.identity.people import DashboardRole

MAY = (DashboardRole.FINANCE, DashboardRole.ADMIN)
NOT = "Nothing was changed."
MAYBE = "It may have been done all the same: see how the books stand before you try again."
DONE, WAITS = ":material/done_all:", ":material/hourglass_top:"
DRAWN = {DONE: st.success, WAITS: st.info}


def desk_for(view: DashboardView) -> AdminClient | None:
    """Return the admin client for permitted people; `None` for all others."""
    viewer = view.viewer
    if viewer.name is None or viewer.role not in MAY or viewer.teams is not None:
        return None
    return admin_client.desk(view.who)


def request_confirmation(name: str, about: object = True) -> None:
    """Show yes and no from the next run on."""
    _hush(name)
    st.session_state[f"{name}-sure"] = about


def pending_change(name: str) -> object | None:
    """Return what a pending confirmation is about, or `None`."""
    found: object | None = st.session_state.get(f"{name}-sure")
    return found


def forget_change(name: str) -> None:
    _hush(name)
    st.session_state.pop(f"{name}-sure", None)


def is_confirmed(name: str, yes: str, *, ready: bool = True) -> bool:
    """Draw yes and no; return whether yes was pressed now. `yes` is its label; no cancels."""
    _draw(name)
    agreed, left = st.columns(2)
    with left:
        if st.button("Leave it", key=f"{name}-no"):
            forget_change(name)
            st.rerun()
    with agreed:
        return st.button(yes, type="primary", key=f"{name}-yes", disabled=not ready)


def send_change(name: str, desk: AdminClient, path: str, /, **given: Any) -> dict[str, Any]:
    """Send a change and return the answer; on an error, rerun the page with the reason."""
    _hush(name)
    try:
        return desk.post(path, **given)
    except (AdminUnavailable, AdminRefused) as error:
        text, icon = _why(error)
        if isinstance(error, AdminRefused):
            fail(name, f"Nothing was changed: {text}", icon)
        reads.forget_reads()
        fail(name, f"{text} {MAYBE if error.heard else NOT}", icon)


def preview_change(desk: AdminClient, path: str, /, **given: Any) -> dict[str, Any] | None:
    """Return the gateway's preview of a change, read again on every run."""
    try:
        return desk.post(path, **given)
    except (AdminUnavailable, AdminRefused) as error:
        text, icon = _why(error)
        st.error(text, icon=icon)
    return None


def _why(error: AdminUnavailable | AdminRefused) -> tuple[str, str]:
    """Return the error text and its icon."""
    if isinstance(error, AdminUnavailable):
        return f"The gateway does not answer. {error}", ":material/cloud_off:"
    return str(error), ":material/block:"


def fail(name: str, text: str, icon: str = ":material/edit_note:") -> NoReturn:
    """Rerun the page with an error text; the requested change stays pending."""
    _outcomes()[name] = text, icon
    st.rerun()


def report_done(name: str, words: str) -> NoReturn:
    """Rerun the page from the top with fresh reads and this text."""
    forget_change(name)
    _outcomes()[name] = words, DONE
    reads.forget_reads()
    st.rerun()


def show_outcome(name: str) -> None:
    """Show the text of `report_done` or `fail`; it stays when the page refreshes."""
    if pending_change(name) is None:  # otherwise it is next to yes and no
        _draw(name)


def clear_outcomes() -> None:
    """Drop all outcome texts, because another page is shown."""
    _outcomes().clear()


def _draw(name: str) -> None:
    text, icon = _outcomes().get(name, ("", ""))
    if text:
        DRAWN.get(icon, st.error)(text, icon=icon)


def _hush(name: str) -> None:
    _outcomes().pop(name, None)


def _outcomes() -> dict[str, tuple[str, str]]:
    """Return the outcome text of each change, with its icon."""
    kept: dict[str, tuple[str, str]] = st.session_state.setdefault("said-of-changes", {})
    return kept
