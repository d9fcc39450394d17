"""What somebody changes from a page: who is shown how, asked before, done by the gateway, told.

The gateway decides once more who may. A change is made in two steps: a button asks for it, and
what it would do is shown with yes and no beneath; `NAME` is the change's, its state and its
buttons' keys begin with it.
"""

from collections.abc import Container
from typing import Any

import streamlit as st

from dashboard import asking, data
from dashboard.asking import Desk, Refused, Unanswered
from dashboard.data import View
from ledger.identity.people import Role

MAY = (Role.FINANCE, Role.ADMIN)


def desk_for(view: View, roles: Container[Role] = MAY) -> Desk | None:
    """The gateway, for those who may; others are shown what is there and no way to change it."""
    viewer = view.viewer
    if viewer.name is None or viewer.role not in roles or viewer.teams is not None:
        return None
    return asking.desk(view.who)


def ask(name: str, about: object = True) -> None:
    """From now on yes and no are shown."""
    st.session_state[f"{name}-sure"] = about


def asked(name: str) -> object | None:
    """What it was asked about; None where nothing was, or all is said."""
    found: object | None = st.session_state.get(f"{name}-sure")
    return found


def forget(name: str) -> None:
    st.session_state.pop(f"{name}-sure", None)


def confirmed(name: str, yes: str, *, ready: bool = True) -> bool:
    """Whether somebody says yes at this moment; `yes` is the button's label. No forgets it."""
    agreed, left = st.columns(2)
    with left:
        if st.button("Leave it", key=f"{name}-no"):
            forget(name)
            st.rerun()
    with agreed:
        return st.button(yes, type="primary", key=f"{name}-yes", disabled=not ready)


def done(desk: Desk, path: str, **given: Any) -> dict[str, Any] | None:
    """The gateway's answer; None where there is none, which was said."""
    try:
        return desk.post(path, **given)
    except Unanswered as error:
        st.error(f"The gateway does not answer. {error}", icon=":material/cloud_off:")
    except Refused as refused:
        st.error(str(refused), icon=":material/block:")
    return None


def tell(name: str, words: str) -> None:
    """Draw the page once more from the top, of the books as they are now, with these words."""
    forget(name)
    st.session_state[f"{name}-done"] = words
    data.forget()
    st.rerun()


def told(name: str) -> None:
    """What `tell` was given, once."""
    if (words := st.session_state.pop(f"{name}-done", None)) is not None:
        st.success(words, icon=":material/done_all:")
