"""Bills from the browser: read from a file, and the books brought to one, by who has signed in.

Finance people and admins with a name see it; what they may do the gateway decides once more. What
would be posted is shown, day by day, before anybody says yes.
"""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dashboard import asking, words
from dashboard.asking import Desk, Refused, Unanswered
from dashboard.data import View
from ledger.invoices import Manner, Stored
from ledger.people import Role

MAY = (Role.FINANCE, Role.ADMIN)
MANNERS = {
    Manner.WHOLE: "it says all that is owed for its days",
    Manner.REPLACES: "it corrects another one of these days",
    Manner.ADDS: "it is owed beside what the books have: a part, a credit note",
}
_DONE, _SURE = "bills-done", "bills-sure"


def bring(view: View, providers: Sequence[str], pools: Sequence[str]) -> None:
    """A form for a file; `providers` and `pools`: who a bill may be of."""
    if (done := st.session_state.pop(_DONE, None)) is not None:
        st.success(done, icon=":material/done_all:")
    desk = _desk(view)
    senders = {f"provider {name}": {"provider": name} for name in providers}
    senders |= {f"GPUs of {name}": {"pool": name} for name in pools}
    if desk is None or not senders:
        return
    with st.expander("Bring in a bill"):
        file = st.file_uploader(
            "OpenAI's costs as JSON, a CSV of days and amounts, or a cloud's FOCUS file",
            type=["json", "csv"], key="bills-file",
        )  # fmt: skip
        sender = st.selectbox("Whose bill it is", list(senders), key="bills-sender")
        pressed = st.button("Read it", key="bills-read", disabled=file is None)
        if not pressed or file is None:
            return
        try:
            content = file.getvalue().decode("utf-8-sig")
        except UnicodeDecodeError:
            st.error(f"{file.name} is no text in UTF-8: export it as CSV or JSON.")
            return
        found = _asked(desk, "/invoices/import", content=content, name=file.name, **senders[sender])
        if found is not None:
            lines = words.plural(found["lines"], "line")
            total = words.usd(found["total_pusd"])
            _told(f"Bill {found['invoice']} is read: {lines}, {total}. Nothing is posted yet.")


def post(view: View, invoice: Stored) -> bool:
    """Whether this viewer is shown how; the bill differs from the books and is not posted."""
    desk = _desk(view)
    if desk is None:
        return False
    if st.button("Bring the books to it", key="bills-post", icon=":material/balance:"):
        st.session_state[_SURE] = invoice.id
    if st.session_state.get(_SURE) != invoice.id:
        return True
    manner = st.radio(
        "How it stands to the books", list(Manner), format_func=MANNERS.__getitem__,
        key="bills-manner",
    )  # fmt: skip
    given = {"invoice": invoice.id, "manner": str(manner)}
    seen = _asked(desk, "/invoices/post", look=True, **given)
    if seen is None:
        return True
    days = {day: pusd for day, pusd in seen["posted_pusd"].items() if pusd}
    st.warning(
        "One adjustment a day, on nobody's expense; entries are never taken back, only corrected "
        "by another bill. It would post:",
        icon=":material/warning:",
    )
    st.code("\n".join(f"{day}  {words.usd(pusd, sign=True)}" for day, pusd in days.items()), None)
    yes, no = st.columns(2)
    with no:
        if st.button("Leave it", key="bills-no"):
            st.session_state.pop(_SURE, None)
            st.rerun()
    with yes:
        if st.button("Yes, post it", type="primary", key="bills-yes", disabled=not days):
            done = _asked(desk, "/invoices/post", **given)
            if done is not None:
                st.session_state.pop(_SURE, None)
                total = words.usd(sum(done["posted_pusd"].values()), sign=True)
                _told(
                    f"Bill {invoice.id} is posted: {total} of adjustments, by {desk.viewer.name}."
                )
    return True


def _desk(view: View) -> Desk | None:
    """The gateway, for those who may; others are shown what is there and no way to change it."""
    viewer = view.viewer
    if viewer.name is None or viewer.role not in MAY or viewer.teams is not None:
        return None
    return asking.desk(view.who)


def _asked(desk: Desk, path: str, **given: Any) -> dict[str, Any] | None:
    """The answer; None where there is none, which was said."""
    try:
        return desk.post(path, **given)
    except Unanswered as error:
        st.error(f"The gateway does not answer. {error}", icon=":material/cloud_off:")
    except Refused as refused:
        st.error(str(refused), icon=":material/block:")
    return None


def _told(done: str) -> None:
    """Once more from the top, of the books as they are now."""
    st.session_state[_DONE] = done
    st.cache_data.clear()
    st.rerun()
