"""Activation and rollback of policy sets in the browser: shown, confirmed, done, reported.

Admins with a name see it; the gateway checks permission again. The change includes the number of
the set that was seen as active: if another one was activated since, nothing is changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import confirmation
from dashboard.admin_client import AdminClient
from dashboard.sections.policyeditor import PolicyDraft
from ledger.identity.people import DashboardRole

FILE = "those of the configuration file"
POLICIES = "policies"  # the change's name


def change(
    desk: AdminClient,
    draft: PolicyDraft,
    shown: Mapping[str, Any],
    past: Sequence[Mapping[str, Any]],
) -> None:
    """Draw the forms; `shown` is the active set, `past` the history, newest first."""
    confirmation.show_outcome(POLICIES)
    viewer = desk.viewer
    if viewer.name is None:
        st.caption(
            "Nobody has signed in here, so nothing can be put in force from here: a change needs "
            "somebody who made it. Name people in an access file "
            "(docs/how-to/dashboard-access.md), or run `breakeven policy apply FILE` where the "
            "gateway runs."
        )
        return
    if viewer.role is not DashboardRole.ADMIN:
        st.caption(f"As {viewer.role} you can play sets; admins put them in force.")
        return
    with st.container(border=True):
        _apply(desk, draft, shown)
        _go_back(desk, shown, past)


def _apply(desk: AdminClient, draft: PolicyDraft, shown: Mapping[str, Any]) -> None:
    ready = draft.valid and bool(draft.changes)
    if st.button(
        "Put this set in force", key="policies-apply", icon=":material/publish:",
        disabled=not ready, help=None if ready else "It is in force, or it has faults.",
    ):  # fmt: skip
        confirmation.request_confirmation(POLICIES, "apply")
    if confirmation.pending_change(POLICIES) == "apply" and ready:
        note = _sure(
            "Every gateway of this ledger follows within 2 seconds. It changes:", draft.changes
        )
        if note is not None:
            given = {"policies": draft.text, "note": note or None, "follows": shown["set"]}
            _do(desk, "/policies/apply", given)


def _go_back(
    desk: AdminClient, shown: Mapping[str, Any], past: Sequence[Mapping[str, Any]]
) -> None:
    earlier = [entry["set"] for entry in past if entry["set"] != shown["set"]]
    if not past:
        return
    choice = st.selectbox(
        "An earlier set", [0, *earlier], key="policies-earlier",
        format_func=lambda number: _set_name(number, past),
    )  # fmt: skip
    if st.button("Go back to it", key="policies-back", icon=":material/undo:"):
        confirmation.request_confirmation(POLICIES, "back")
    if confirmation.pending_change(POLICIES) != "back":
        return
    wanted: dict[str, Any] = {"set": choice} if choice else {"to_file": True}
    changes = desk.post("/policies/rollback", look=True, **wanted)["changes"]
    if not changes:
        st.info("It says the same as the set in force.", icon=":material/check_circle:")
        return
    note = _sure("Every gateway of this ledger follows within 2 seconds. It changes:", changes)
    if note is not None:
        _do(desk, "/policies/rollback", {**wanted, "note": note or None, "follows": shown["set"]})


def _sure(words: str, changes: Sequence[str]) -> str | None:
    """Return the note once the viewer confirms, `None` before."""
    st.warning(words, icon=":material/warning:")
    st.code("\n".join(changes), language="diff")
    note = st.text_input("Reason, for later readers (optional)", key="policies-note", max_chars=500)
    return note if confirmation.is_confirmed(POLICIES, "Yes, put it in force") else None


def _do(desk: AdminClient, path: str, given: Mapping[str, Any]) -> None:
    confirmation.forget_change(POLICIES)
    done = confirmation.send_change(POLICIES, desk, path, **given)
    st.session_state.pop("policies-draft", None)
    confirmation.report_done(POLICIES, f"Set {done['set']} is in force, by {done['by']}.")


def _set_name(number: int, past: Sequence[Mapping[str, Any]]) -> str:
    found = next((entry for entry in past if entry["set"] == number), None)
    if found is None:
        return FILE
    return f"set {number} of {found['since']}, by {found['by']}"
