"""Editor of a policy set: checked by the gateway, and replayed on recorded traffic.

The text and the displayed what-if survive a change of page. The what-if's name is in the URL, so
that it can be shared while its host keeps it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dashboard import confirmation, fields
from dashboard.admin_client import AdminClient, AdminRefused, AdminUnavailable
from dashboard.sections import whatifresult

SIMULATE = "/policies/simulate"
SPANS = {"24 h": "last-24-hours", "7 d": "last-7-days", "30 d": "last-30-days"}
MOST = (2_000, 10_000, 20_000, 50_000, 200_000)
PLAY = "policies-whatif"  # key of the error of a what-if that did not start
NEW, OLD = "this set", "in force"
LOOK_S = 1.0
_TEXT, _DRAFT, _BASE, _JUDGED, _JOB, _TAKE = (
    f"policies-{name}" for name in ("text", "draft", "base", "judged", "job", "taken")
)


@dataclass(frozen=True, slots=True)
class PolicyDraft:
    """An edited set. `changes` is its difference from the active set; empty if it has errors."""

    text: str
    valid: bool
    changes: Sequence[str]


def edit(desk: AdminClient, shown: Mapping[str, Any]) -> PolicyDraft:
    """Draw the editor and return the draft; `shown` is the active set from the gateway."""
    _follow(shown["policies"])
    text = st.text_area(
        "Policies, as YAML", key=_TEXT, height=330,
        help="As in the configuration file's `policies`. Nothing is put in force by editing.",
    )  # fmt: skip
    st.session_state[_DRAFT] = text
    judged, changes = _judge_policies(desk, text, shown)
    for fault in judged["faults"]:
        where = f"Line {fault['line']}, " if fault["line"] is not None else ""
        told = f"{where}`{fault['path'] or 'the set'}`: {fault['message']}"
        is_error = fault["severity"] == "error"
        (st.error if is_error else st.warning)(told, icon=":material/edit_note:")
    if judged["valid"] and not changes:
        st.caption("This is the set in force. Change a promise or a weight, and play it.")
    elif judged["valid"]:
        with st.expander("What it changes", expanded=False):
            st.code("\n".join(changes), language="diff")
        if st.button("Back to what is in force", key="policies-reset", on_click=_reset):
            st.session_state.pop(_JUDGED, None)
    return PolicyDraft(text, judged["valid"], changes)


def play(desk: AdminClient, draft: PolicyDraft) -> None:
    """Draw the options and start a what-if; `show_job` displays it."""
    asked = _options()
    if st.button(
        "What would it have done?", type="primary", icon=":material/play_arrow:",
        key="policies-play", disabled=not draft.valid,
        help="Plays recorded traffic through both sets in virtual time; nothing is sent.",
    ):  # fmt: skip
        _start_job(desk, draft, asked)
    confirmation.show_outcome(PLAY)


def show_job(desk: AdminClient) -> bool:
    """Draw the started what-if, or that in the URL. Return whether there is one."""
    job = st.session_state.get(_JOB) or st.query_params.get("whatif")
    if not job:
        return False
    try:
        found = desk.get(SIMULATE, job=job)
    except AdminRefused as refused:
        if refused.status != 404:
            raise
        st.info(f"{refused} Play it once more.", icon=":material/history:")
        st.session_state.pop(_JOB, None)
        return False
    if found["state"] == "running":
        _watch(desk, job)
        return True
    if found["state"] == "cancelled":
        st.info(f"No figures: {found['fault']}.", icon=":material/cancel:")
        return True
    if found["state"] == "failed":
        st.error(_page_wording(found["fault"]), icon=":material/error:")
        return True
    if found["result"]["traffic"].get("cut"):
        st.warning(
            "There was more traffic in that time: only the earliest part is played. Ask for more "
            "requests, or for a shorter time.",
            icon=":material/content_cut:",
        )
    _offer(found["asked"]["sets"][0])
    whatifresult.draw_result(found["result"])
    return True


def _offer(played: Sequence[str]) -> None:
    """Offer the text of a what-if that was opened by its URL."""
    name, text = played
    if name == NEW and text != st.session_state[_DRAFT]:
        st.caption("These figures are of another text than the one above.")
        if st.button("Take the text that was played", key="policies-take"):
            st.session_state[_TAKE] = text
            st.rerun()


def _follow(base: str) -> None:
    """Follow the active policies until the viewer edits the text; edited text stays."""
    state = st.session_state
    if (asked := state.pop(_TAKE, None)) is not None:
        state[_TEXT] = state[_DRAFT] = asked
    if _TEXT not in state:
        state[_TEXT] = state.get(_DRAFT, base)
    if state[_TEXT] == state.get(_BASE):
        state[_TEXT] = base
    state[_BASE] = base


def _reset() -> None:
    st.session_state[_TEXT] = st.session_state[_DRAFT] = st.session_state[_BASE]


def _judge_policies(
    desk: AdminClient, text: str, shown: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Sequence[str]]:
    """Return check and difference, requested once for each text, as pages refresh."""
    asked = text, shown["version"]
    known = st.session_state.get(_JUDGED)
    if known is None or known[0] != asked:
        judged = desk.post("/policies/check", policies=text)
        changes = desk.post("/policies/diff", policies=text)["changes"] if judged["valid"] else []
        known = st.session_state[_JUDGED] = asked, judged, changes
    return known[1], known[2]


def _options() -> dict[str, Any]:
    span = st.segmented_control(
        "Traffic of the last", list(SPANS), default="24 h", required=True, key="policies-span"
    )
    left, right = st.columns(2)
    with left:
        most = st.selectbox(
            "Requests at most", MOST, index=1, format_func="{:,}".format, key="policies-most",
            help="The earliest of that time: a part of it at its own pace, not a thinner whole.",
        )  # fmt: skip
    with right:
        times = fields.number(
            st.container(), "Times its pace", (0.1, 100.0), 1.0, step=0.5,
            key="policies-times", help="2: the same requests in half the time.",
        )  # fmt: skip
    with st.expander("Names and engines that the traffic does not tell"):
        model = st.text_input(
            "Models", key="policies-model", placeholder="old-name=new-name, ...",
            help="For requests whose model is no longer configured.",
        )  # fmt: skip
        engine = st.text_input(
            "Engines", key="policies-engine", placeholder="pool=profile, ...",
            help="How fast a pool is whose engine nobody measured.",
        )  # fmt: skip
    return {
        "ledger": SPANS[span], "most": most, "times": times, "model": _split_list(model),
        "engine": _split_list(engine),
    }  # fmt: skip


def _start_job(desk: AdminClient, draft: PolicyDraft, asked: Mapping[str, Any]) -> None:
    other = {"against": "in-force", "against_name": OLD} if draft.changes else {}
    name = NEW if draft.changes else OLD
    confirmation.forget_change(PLAY)
    try:
        job = desk.post(SIMULATE, policies=draft.text, name=name, **other, **asked)["job"]
    except AdminRefused as refused:
        busy = refused.code == "what_if_busy"
        confirmation.fail(PLAY, str(refused), confirmation.WAITS if busy else ":material/block:")
    st.session_state[_JOB] = st.query_params["whatif"] = job


@st.fragment(run_every=LOOK_S)
def _watch(desk: AdminClient, job: str) -> None:
    """Show a job's progress and a way to cancel it, redrawn on its own."""
    try:
        found = desk.get(SIMULATE, job=job)
        if found["state"] == "running" and not _is_cancelled(desk, job, found["progress"]):
            return
    except (AdminRefused, AdminUnavailable):  # the page shows the error on the rerun
        pass
    st.rerun()


def _is_cancelled(desk: AdminClient, job: str, now: Mapping[str, Any]) -> bool:
    """Draw the progress and return whether the viewer cancelled it now."""
    of = now["of"]
    text = (
        f"{now['done']:,} of {of:,} requests: {now['doing']}" if of else _stage_text(now["doing"])
    )
    st.progress(now["done"] / of if of else 0.0, text=f"{text} ...")
    if not st.button("Cancel it", key="policies-cancel", icon=":material/cancel:"):
        return False
    desk.delete(SIMULATE, job=job)
    return True


def _stage_text(text: str) -> str:
    return {"starts": "The gateway starts a process of its own for it"}.get(text, text)


def _page_wording(fault: str) -> str:
    """Replace the command's options in a gateway error by the names of fields."""
    for option, field in (
        ("--ledger", "traffic of"),
        ("--model", "Models:"),
        ("--engine", "Engines:"),
    ):
        fault = fault.replace(option, field)
    return fault


def _split_list(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
