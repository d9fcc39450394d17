"""Bills in the browser: import from a file, and posting, for signed-in viewers.

Finance people and admins with a name see it; the gateway checks permission again. The adjustments
are shown by day before the confirmation.
"""

from collections.abc import Sequence

import streamlit as st

from dashboard import confirmation, formatting
from dashboard.data.invoices import InvoiceDetail
from dashboard.data.reads import DashboardView
from ledger.invoices.books import ImportedInvoice, PostingMode
from ledger.money import usd_text

MANNERS = {
    PostingMode.WHOLE: "it says all that is owed for its days",
    PostingMode.REPLACES: "it corrects another one of these days",
    PostingMode.ADDS: "it is owed beside what the books have: a part, a credit note",
}
BILLS = "bills"  # the change's name


def show_import_form(view: DashboardView, providers: Sequence[str], pools: Sequence[str]) -> None:
    """Draw a form for a bill's file; `providers` and `pools` are the possible senders."""
    confirmation.show_outcome(BILLS)
    desk = confirmation.desk_for(view)
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
            confirmation.fail(BILLS, f"{file.name} is not text in UTF-8: export it as CSV or JSON.")
        given = {"content": content, "name": file.name, **senders[sender]}
        found = confirmation.send_change(BILLS, desk, "/invoices/import", **given)
        lines = formatting.plural(found["lines"], "line")
        total = usd_text(found["total_pusd"])
        said = f"Bill {found['invoice']} is read: {lines}, {total}. Nothing is posted yet."
        confirmation.report_done(BILLS, said)


def show_state(view: DashboardView, found: InvoiceDetail, difference: int) -> None:
    """Draw who posted the bill, or offer to post it, with notes on the comparison."""
    invoice = found.invoice
    if invoice.posted_us is not None:
        posted = formatting.moment(invoice.posted_us)
        st.caption(f"Posted {posted} by {invoice.posted_by}: adjustments are in the books.")
    elif difference and not show_posting_form(view, invoice):
        st.caption(f"To adjust the ledger to this invoice: {found.advice}.")
    if found.note is not None:
        st.caption(found.note)


def show_posting_form(view: DashboardView, invoice: ImportedInvoice) -> bool:
    """Draw the form for an unposted, differing bill; return whether the viewer may see it."""
    desk = confirmation.desk_for(view)
    if desk is None:
        return False
    if st.button("Post the difference", key="bills-post", icon=":material/balance:"):
        confirmation.request_confirmation(BILLS, invoice.id)
    if confirmation.pending_change(BILLS) != invoice.id:
        return True
    manner = st.radio(
        "How it stands to the books", MANNERS, format_func=MANNERS.__getitem__,
        index=list(MANNERS).index(PostingMode.ADDS) if invoice.is_credit else 0,
        key="bills-manner",
    )  # fmt: skip
    given = {"invoice": invoice.id, "manner": str(manner)}
    seen = confirmation.preview_change(desk, "/invoices/post", look=True, **given)
    if seen is None:
        return True
    if waits := seen.get("waits"):
        st.info(
            f"It cannot be posted before {formatting.moment(waits['until_us'])}: {waits['why']}.",
            icon=":material/hourglass_top:",
        )
        return True
    if dropped := seen.get("dropped"):
        st.warning(dropped, icon=":material/warning:")
    days = {day: pusd for day, pusd in seen["posted_pusd"].items() if pusd}
    st.warning(
        "One adjustment a day, on nobody's expense; entries are never taken back, only corrected "
        "by another bill. It would post:",
        icon=":material/warning:",
    )
    st.code("\n".join(f"{day}  {usd_text(pusd, sign=True)}" for day, pusd in days.items()), None)
    if confirmation.is_confirmed(BILLS, "Yes, post it", ready=bool(days)):
        done = confirmation.send_change(BILLS, desk, "/invoices/post", **given)
        total = usd_text(sum(done["posted_pusd"].values()), sign=True)
        said = f"Bill {invoice.id} is posted: {total} of adjustments, by {desk.viewer.name}."
        confirmation.report_done(BILLS, said)
    return True
