"""SLOs in words: what each policy promises, and by how much its latest answers kept it.

What is promised the gateway says, asked briefly and once a minute: a page never waits for one that
is away. What was kept the books say, of the latest answers, each judged by what was promised then.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import asking, data, words
from dashboard.asking import Refused, Unanswered
from dashboard.data import View
from ledger.queries.reads import Kept

LATEST = 5_000
ASKED_EVERY_US = 60 * 10**6
GLANCE_S = 1.0
_KNOWN = "promises-known"
Promise = Mapping[str, Any]  # as the gateway tells it


def lines(view: View) -> list[str]:
    """A sentence for each policy under which something was promised."""
    kept = data.kept(view, LATEST)
    if not kept:
        return ["Nothing was promised to these answers: a policy's `slo` promises."]
    promised = _promised(view)
    total = sum(one.answers for one in kept)
    of = f"Of the latest {words.plural(total, 'answer')} to which something was promised."
    return [*(line(one, promised.get(one.policy)) for one in kept), of]


def line(one: Kept, promise: Promise | None) -> str:
    share = one.met / one.answers
    kept = f"**{words.percent(share, digits=1)}** kept"
    if promise is None:
        return f"**{one.policy}**: {kept}"
    over = 100 * (share - promise["attainment"])
    points = f"{abs(over):.1f} points {'above' if over >= 0 else '**short**'}"
    if abs(over) < 0.05:
        points = "just so"
    return f"**{one.policy}**: {in_words(promise)}: {kept}, {points}"


def in_words(promise: Promise) -> str:
    """`first word within 0.5 s, then 40 ms a token, 99 % of answers`."""
    first, each = promise["ttft_ms"], promise["tpot_ms"]
    parts = [] if first is None else [f"first word within {first / 1000:g} s"]
    if each is not None:
        parts.append(f"{'then ' if parts else ''}{each:g} ms a token")
    return f"{', '.join(parts)}, {100 * promise['attainment']:g} % of answers"


def _promised(view: View) -> Mapping[str, Promise]:
    """By policy; nothing where the gateway says nothing."""
    now = view.now_us // ASKED_EVERY_US
    known = st.session_state.get(_KNOWN)
    if known is None or known[0] != now:
        known = st.session_state[_KNOWN] = now, {one["policy"]: one for one in asked(view)}
    found: Mapping[str, Promise] = known[1]
    return found


def asked(view: View) -> Sequence[Promise]:
    """What the gateway says is promised at this moment; nothing where it does not answer."""
    desk = asking.desk(view.who)
    if desk is None:
        return []
    try:
        shown = desk.get("/policies", within_s=GLANCE_S)
    except (Refused, Unanswered):
        return []
    found: Sequence[Promise] = shown.get("promises", [])  # an older gateway does not say
    return found
