"""Owners of projects on providers' bills: shown to all, entered by finance and admins."""

import streamlit as st

from dashboard import confirmation, formatting, theme
from dashboard.data import entries, invoices
from dashboard.data.reads import DashboardView
from dashboard.figures import time_column
from ledger.invoices.bookings import PROVIDER
from ledger.manual_entries import entries_in_force, latest_us

PROJECTS = "projects"  # the change's name


def show(view: DashboardView) -> None:
    st.subheader("Whose projects on bills are", anchor=False)
    confirmation.show_outcome(PROJECTS)
    entered = entries.projects(view)
    found = entries_in_force(entered, latest_us(entered, view.now_us))
    standing = [
        (entry.name.partition("/"), entry)
        for _, entry in sorted(found.items())
        if entry.says is not None
    ]
    if standing:
        theme.table(
            [
                {
                    "provider": provider,
                    "project": project,
                    "team": (entry.says or {})["team"],
                    "entered by": entry.actor,
                    formatting.zoned("on"): formatting.instant(entry.recorded_us),
                    "why": entry.note or "",
                }
                for (provider, _, project), entry in standing
            ],
            about="project",
            column_config={formatting.zoned("on"): time_column("D MMM YYYY HH:mm")},
        )
    else:
        st.caption(
            "No project is anybody's yet: bills compare their projects by the names that they have."
            " "
            "Say whose one is, and `Reconciliation and audit` compares by teams."
        )
    desk = confirmation.desk_for(view)
    senders = sorted(
        {bill.party for bill in invoices.bills(view) if bill.party.startswith(PROVIDER)}
    )
    if desk is None:
        return
    if not senders:
        st.caption("Projects stand on providers' bills; none is imported.")
        return
    with st.form("projects-form", border=True):
        first, second, third = st.columns(3, vertical_alignment="bottom")
        provider = first.selectbox(
            "Provider", [sender.removeprefix(PROVIDER) for sender in senders]
        )
        project = second.text_input("Project, as on its bills", max_chars=200)
        team = third.text_input("Team; empty: nobody's", max_chars=200)
        note = st.text_input("Reason, for later readers (optional)", max_chars=500)
        if st.form_submit_button("Say whose it is", icon=":material/groups:"):
            if not project.strip():
                confirmation.fail(
                    PROJECTS, "Nothing is entered: name the project, as its bills do."
                )
            given = {"provider": provider, "project": project.strip()}
            said = {"team": team.strip() or None, "note": note.strip() or None}
            done = confirmation.send_change(PROJECTS, desk, "/projects", **given, **said)
            whose = "nobody's" if done["says"] is None else f"{done['says']['team']}'s"
            confirmation.report_done(PROJECTS, f"{done['name']} is {whose}, says {done['by']}.")
