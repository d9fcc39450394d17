"""Policies page: check policy sets, replay them on recorded traffic, activate them.

Active sets, checks, what-ifs and changes use the gateway's admin API as the viewer
(`dashboard.admin_client`). Past activations are read from the ledger, and marked on the share of
requests that spilled.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import admin_client, formatting, theme
from dashboard.admin_client import AdminClient, AdminRefused, AdminUnavailable
from dashboard.charts import policies
from dashboard.data import fleet, reads
from dashboard.data.reads import DashboardView
from dashboard.sections import content, policychange, policyeditor
from ledger.policies import PolicySet
from ledger.reports.survey import Survey

LISTED = 20
BUILT_IN = (("default", "every request, and promises nothing: the built-in one"),)


def show(view: DashboardView) -> None:
    desk = admin_client.desk(view.who)
    if desk is None:
        st.info(
            "No gateway is named, so nothing can be judged or played from here. "
            f"{admin_client.HOW}",
            icon=":material/link_off:",
        )
    else:
        try:
            _show_policies(desk)
        except AdminUnavailable as error:
            st.warning(f"The gateway does not answer. {error}", icon=":material/cloud_off:")
        except AdminRefused as refused:
            _show_refusal(refused)
    _past(view)
    content.show(view)


def _show_policies(desk: AdminClient) -> None:
    shown = desk.get("/policies")
    past = desk.get("/policies/history", limit=LISTED)["data"]
    _in_force(desk, shown)
    st.subheader("What would another policy have done?", anchor=False)
    left, right = st.columns([3, 2])
    with left:
        draft = policyeditor.edit(desk, shown)
    with right:
        policyeditor.play(desk, draft)
        policychange.change(desk, draft, shown, past)
    if not policyeditor.show_job(desk):
        st.info(
            "Change the set, choose whose traffic, and play it: dollars, promises kept, spill and "
            "load of both sets appear here. Nothing is sent and nothing changes.",
            icon=":material/science:",
        )


def _in_force(desk: AdminClient, shown: Mapping[str, Any]) -> None:
    if shown["fault"] is not None:
        theme.label(f"The stored set does not fit this configuration: {shown['fault']}")
    left, right = st.columns([1, 2])
    since = f"since {shown['since']}, by {shown['by']}" if shown["set"] else "from the start on"
    note = [] if shown["note"] is None else [f"\u201c{shown['note']}\u201d"]
    with left:
        name = f"Set {shown['set']}" if shown["set"] else "The configuration file's"
        theme.card(
            "In force",
            theme.big(name, size="mid"),
            theme.small(since, f"version **{shown['version']}**", *note),
            about="policies",
        )
    with right:
        said = _rule_texts(desk, shown)
        theme.card(
            formatting.plural(len(said), "policy").replace("policys", "policies"),
            theme.small(*(f"**{name}**: {text}" for name, text in said or BUILT_IN)),
            about="policies",
        )


def _rule_texts(desk: AdminClient, shown: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (name, description) pairs, fetched once for each version."""
    known = st.session_state.get("policies-words")
    if known is None or known[0] != shown["version"]:
        lines = desk.post("/policies/check", policies=shown["policies"])["policies"]
        known = st.session_state["policies-words"] = shown["version"], lines
    return [(name, text) for name, _, text in (line.partition(": ") for line in known[1])]


def _show_refusal(refused: AdminRefused) -> None:
    if refused.status == 401:
        st.warning(
            f"The gateway does not know this dashboard. {refused} {admin_client.HOW}",
            icon=":material/key_off:",
        )
    elif refused.status == 403:
        st.warning(f"The gateway does not allow it. {refused}", icon=":material/lock:")
    else:
        st.error(str(refused), icon=":material/error:")


# ---------------------------------------------------------------- the past, from the books


def _past(view: DashboardView) -> None:
    sets = fleet.newest_policy_sets(view, LISTED)
    st.subheader("Since when, and what it did to the share that spills", anchor=False)
    survey = reads.spending(view)
    records = spill_over_time(survey)
    marks = markers(sets, view)
    if records:
        chart = policies.marked_chart(records, marks, "of requests for own models")
        theme.chart(chart, about="routing")
    else:
        st.caption("No request in this period that own engines serve.")
    if not sets:
        st.caption(
            "Policies have always come from the configuration file: no set was put in force so far."
        )
        return
    theme.table(
        [
            {
                "set": stored.number,
                "since": formatting.moment(stored.recorded_us),
                "by": stored.actor,
                "why": stored.note or "",
                "what": "the configuration file's"
                if stored.document is None
                else "a set of its own",
            }
            for stored in sets
        ],
        about="policies",
    )


def spill_over_time(survey: Survey) -> list[dict[str, Any]]:
    """Return for each bucket the share of attempts for own models that an API answered."""
    all_, spilled = defaultdict[int, int](int), defaultdict[int, int](int)
    for moment in survey.moments:
        if moment.backend == "own" or moment.spilled:
            all_[moment.start_us] += moment.attempts
            spilled[moment.start_us] += moment.attempts if moment.spilled else 0
    return [
        {
            "at": formatting.instant(start),
            "until": formatting.instant(survey.bucket_of(start)[1]),
            "kind": "spilled to APIs",
            "value": spilled[start] / count,
        }
        for start, count in sorted(all_.items())
    ]


def markers(sets: Sequence[PolicySet], view: DashboardView) -> list[dict[str, Any]]:
    """Return the sets that were activated in the period, including a new one."""
    start_us, dated = view.scope.start_us, view.dated
    return [
        {
            "at": formatting.instant(stored.recorded_us),
            "label": f"v{stored.number}",
            "told": f"policies {stored.number} by {stored.actor}"
            + (f": {stored.note}" if stored.note else ""),
        }
        for stored in sets
        if start_us <= stored.recorded_us and (dated is None or stored.recorded_us < dated.end_us)
    ]
