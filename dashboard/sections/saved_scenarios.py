"""Named scenarios: saved through the gateway, listed for all viewers, shared by URL.

A scenario is the set of changed fields of a page, as in the URL; unchanged fields follow the
ledger.
"""

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import streamlit as st

from dashboard import confirmation, formatting
from dashboard.admin_client import AdminClient
from dashboard.data import entries
from dashboard.data.reads import DashboardView
from ledger.manual_entries import ManualEntry, entries_in_force, latest_us

MOST_CHARACTERS = 60


def scenarios(view: DashboardView, page: str, of_page: Callable[[str], bool]) -> None:
    """Draw the saved scenarios; `of_page` tests whether a URL name is a field of the page."""
    confirmation.show_outcome(_session_key(page))
    found = entries.scenarios(view)
    standing = entries_in_force(found, latest_us(found, view.now_us))
    mine = [
        entry for _, entry in sorted(standing.items()) if (entry.says or {}).get("page") == page
    ]
    with st.expander(
        f"Saved scenarios ({len(mine)})",
        expanded=bool(confirmation.pending_change(_session_key(page))),
    ):
        for entry in mine:
            why = f": {formatting.quote(entry.note)}" if entry.note else ""
            st.markdown(
                f"* [{formatting.quote(entry.name)}]({link(page, entry)}), "
                f"{len((entry.says or {})['turned'])} turned, by {formatting.quote(entry.actor)}, "
                f"{formatting.moment(entry.recorded_us)}{why}"
            )
        if not mine:
            st.caption("None is saved yet. What is turned stands in the address of this page.")
        desk = confirmation.desk_for(view)
        if desk is not None:
            turned = {name: st.query_params[name] for name in st.query_params if of_page(name)}
            _save(desk, page, turned, mine)


def link(page: str, manual_entry: ManualEntry) -> str:
    """Return the page's URL with all fields that the scenario changed."""
    turned = (manual_entry.says or {})["turned"]
    return f"{page}?{urlencode(turned, quote_via=quote)}"


def _save(
    desk: AdminClient, page: str, turned: dict[str, str], mine: Sequence[ManualEntry]
) -> None:
    change = _session_key(page)
    first, second = st.columns(2, vertical_alignment="bottom")
    name = first.text_input(
        "Save what is turned under a name", max_chars=MOST_CHARACTERS, key=f"{change}-name"
    ).strip()
    note = second.text_input(
        "Reason, for later readers (optional)", max_chars=500, key=f"{change}-note"
    )
    if st.button(
        "Save it", key=f"{change}-save", icon=":material/bookmark_add:",
        disabled=not (name and turned),
        help=None if turned else "Nothing is turned: it is as the books have it.",
    ):  # fmt: skip
        confirmation.request_confirmation(change, "save")
    gone = None
    if mine:
        gone = st.selectbox(
            "Take one off the list",
            [entry.name for entry in mine],
            index=None,
            key=f"{change}-gone",
        )
        if gone and st.button("Take it off", key=f"{change}-drop", icon=":material/delete:"):
            confirmation.request_confirmation(change, "drop")
    wanted = confirmation.pending_change(change)
    if wanted == "save" and name and turned:
        before = next((entry for entry in mine if entry.name == name), None)
        if before is None or confirmation.is_confirmed(
            change, f"Yes, in the place of {before.actor}'s"
        ):
            given = {"name": name, "page": page, "turned": turned, "note": note.strip() or None}
            _do(desk, change, "/scenarios", given, f"{name} is saved")
    elif wanted == "drop" and gone and confirmation.is_confirmed(change, "Yes, take it off"):
        given = {"name": gone, "note": note.strip() or None}
        _do(desk, change, "/scenarios/drop", given, f"{gone} is off the list")


def _do(desk: AdminClient, change: str, path: str, given: dict[str, Any], said: str) -> None:
    confirmation.forget_change(change)
    done = confirmation.send_change(change, desk, path, **given)
    confirmation.report_done(change, f"{said}, by {done['by']}.")


def _session_key(page: str) -> str:
    return f"scenario-{page}"
