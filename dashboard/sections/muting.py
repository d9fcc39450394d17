"""Muting and unmuting of series, next to the list of anomalies."""

from collections.abc import Iterable, Mapping

import streamlit as st

from dashboard import confirmation, formatting
from dashboard.data import entries
from dashboard.data.reads import DashboardView
from ledger.manual_entries import ManualEntry, entries_in_force, latest_us

MUTING = "muting"  # the change's name
NONE = "choose a series"


def muted(view: DashboardView, by: str) -> Mapping[str, ManualEntry]:
    """Return the visible muted series of a dimension."""
    found = entries.mutes(view, by)
    standing = entries_in_force(found, latest_us(found, view.now_us))
    return {name: entry for name, entry in standing.items() if entry.says is not None}


def show(view: DashboardView, by: str, names: Iterable[str]) -> None:
    """Offer to mute one of these series, or to unmute muted ones of the dimension."""
    confirmation.show_outcome(MUTING)
    silent = {name.removeprefix(f"{by}/"): entry for name, entry in muted(view, by).items()}
    for name, entry in silent.items():
        who = f", by {formatting.quote(entry.actor)}" if entry.actor else ""
        moment = formatting.moment(entry.recorded_us)
        st.caption(f"Muted: {formatting.quote(name)}{who}, {moment}.")
    loud = [*dict.fromkeys(names)]
    desk = confirmation.desk_for(view)
    if desk is None or not (loud or silent):
        return
    offered = [NONE, *loud, *silent]
    name = st.selectbox("Mute or unmute a series", offered, key=f"muted-{by}")
    if name == NONE:
        return
    verb, words = ("unmute", "Unmute") if name in silent else ("mute", "Mute")
    if st.button(words, key=f"{verb}-{by}", icon=":material/notifications_off:"):
        confirmation.send_change(MUTING, desk, f"/anomalies/{verb}", by=by, name=name)
        done = "is not muted any more" if name in silent else "is muted"
        confirmation.report_done(MUTING, f"{by} {formatting.quote(name)} {done}.")
