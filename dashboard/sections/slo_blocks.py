"""SLO attainment of each policy: its promise, and how its latest answers kept it.

Promises come from the gateway, requested once a minute with a short timeout, so that a page never
waits for an unavailable one. Attainment comes from the ledger's latest answers, each judged by its
promise at the time.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import admin_client, formatting, theme
from dashboard.admin_client import AdminRefused, AdminUnavailable
from dashboard.data import reads
from dashboard.data.reads import DashboardView
from ledger.queries.reads import SloAttainment

LATEST = 5_000
ASKED_EVERY_US = 60 * 10**6
GLANCE_S = 1.0
_KNOWN = "promises-known"
JUST = 0.05  # percentage points: invisible in a percentage with one decimal
Promise = Mapping[str, Any]  # as the gateway tells it
Row = tuple[str, str, str | None]


def blocks(view: DashboardView) -> list[str]:
    """Return each policy's kept promises as HTML of a card."""
    kept = reads.slo_attainment(view, LATEST)
    if not kept:
        return [theme.small("Nothing was promised to these answers: a policy promises by its slo.")]
    promised = _promises_by_policy(view)
    total = sum(kept_value.answers for kept_value in kept)
    of = f"Kept of the latest {formatting.plural(total, 'answer')} to which something was promised"
    told = f"{of}; by how much that is above what is promised, or short of it."
    return [
        theme.rows(*(row(kept_value, promised.get(kept_value.policy)) for kept_value in kept)),
        theme.small(told),
    ]


def row(slo_attainment: SloAttainment, promise: Promise | None) -> Row:
    share = slo_attainment.met / slo_attainment.answers
    kept = formatting.percent(share, digits=1)
    if promise is None:
        return slo_attainment.policy, kept, None
    over = 100 * (share - promise["attainment"])
    points = "just so" if abs(over) < JUST else f"{over:+.1f} points".replace("-", "\N{MINUS SIGN}")
    colour = theme.LOSS if over <= -JUST else theme.GAIN
    return f"{slo_attainment.policy}: {promise_text(promise)}", f"{kept}, {points}", colour


def promise_text(promise: Promise) -> str:
    """Return a promise as text: `95 % within 0.5 s, then 40 ms a token`."""
    first, each = promise["ttft_ms"], promise["tpot_ms"]
    parts = [] if first is None else [f"within {first / 1000:g} s"]
    if each is not None:
        parts.append(f"{'then ' if parts else ''}{each:g} ms a token")
    return f"{100 * promise['attainment']:g} % {', '.join(parts)}"


def _promises_by_policy(view: DashboardView) -> Mapping[str, Promise]:
    """Return promises by policy; empty if the gateway does not answer."""
    now = view.now_us // ASKED_EVERY_US
    known = st.session_state.get(_KNOWN)
    if known is None or known[0] != now:
        known = st.session_state[_KNOWN] = (
            now,
            {request["policy"]: request for request in stated_promises(view)},
        )
    found: Mapping[str, Promise] = known[1]
    return found


def stated_promises(view: DashboardView) -> Sequence[Promise]:
    """Return the promises that the gateway states now; empty if it does not answer."""
    desk = admin_client.desk(view.who)
    if desk is None:
        return []
    try:
        shown = desk.get("/policies", within_s=GLANCE_S)
    except (AdminRefused, AdminUnavailable):
        return []
    found: Sequence[Promise] = shown.get("promises", [])  # older gateways do not return it
    return found
