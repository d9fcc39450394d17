"""Sign-in pages: the sign-in itself, reasons for a refusal, the viewer's name."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from dashboard import theme
from dashboard.viewer import NotAllowed, Viewer
from dashboard.viewer_identity import SignInNeeded, access_file
from ledger.identity.people import AccessFileError

OPEN = "Open: nobody is asked who they are, and whoever reaches this address sees all."


def sign_in() -> None:
    """Draw a button for each provider that `[auth]` names."""
    st.subheader("Sign in", anchor=False)
    st.write("Spending is shown to people of the house. Sign in with your account there.")
    for name in providers():
        label = "Sign in" if name is None else f"Sign in with {name}"
        st.button(
            label, on_click=st.login, args=() if name is None else (name,), type="primary",
            icon=":material/login:", key=f"sign-in-{name}",
        )  # fmt: skip


@contextmanager
def guard_page() -> Iterator[None]:
    """Show a message instead of content that the viewer may not see."""
    try:
        yield
    except SignInNeeded:
        sign_in()
    except NotAllowed as refused:
        refuse(str(refused))


def providers() -> list[str | None]:
    """Return Streamlit's provider names; `None` for a single unnamed provider."""
    file = access_file(sys.argv[1:], os.environ)
    try:
        auth = None if file is None else file.read().auth
    except AccessFileError:
        return []
    named = [name for name, value in (auth or {}).items() if isinstance(value, dict)]
    return [name for name in named if name != "client_kwargs"] or [None]


def refuse(text: str) -> None:
    st.warning(text, icon=":material/lock:")
    if st.user.get("is_logged_in"):
        st.button("Sign out", on_click=st.logout, icon=":material/logout:", key="sign-out-here")


def show_viewer(viewer: Viewer) -> None:
    """Draw the viewer's name and role in the sidebar."""
    if viewer.name is None:
        st.caption(OPEN)
        return
    teams = "" if viewer.teams is None else f" of {', '.join(viewer.teams)}"
    st.html(theme.small(f"**{viewer.name}**: {viewer.role}{teams}"))  # a name is not a markdown
    if st.user.get("is_logged_in"):
        st.button("Sign out", on_click=st.logout, icon=":material/logout:", key="sign-out")
