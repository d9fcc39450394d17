"""Spend by virtual tag: the cost of each value, and a form for the rules."""

from collections.abc import Mapping

import streamlit as st

from dashboard import confirmation, formatting, theme
from dashboard.admin_client import AdminClient
from dashboard.data import allocation, tags
from dashboard.data.reads import DashboardView
from dashboard.figures import money_columns, shown_amount
from ledger.manual_entries import ManualEntry
from ledger.reports.virtual_tags import VirtualTagError, parse_tag, rule_lines

TAGS = "virtual-tags"  # the change's name
NEW = "a new virtual tag"
PLACEHOLDER = "support: team=support|helpdesk\nsearch: team=search, model=chat"


def show(view: DashboardView) -> None:
    """Draw a table for the chosen virtual tag; viewers of single teams see none."""
    if not view.viewer.sees_house:
        return
    known = allocation.tag_entries(view)
    desk = confirmation.desk_for(view)
    confirmation.show_outcome(TAGS)
    if not known and desk is None:
        return
    st.subheader("By virtual tag", anchor=False)
    if known:
        _table(view, st.selectbox("Virtual tag", list(known), key="virtual-tag"))
    else:
        st.caption(
            "None is entered. Its rules give each request one value by team, model, key or tag, "
            "also requests of the past: a product, a cost centre, an environment."
        )
    if desk is not None:
        with st.expander("Enter, change or withdraw a virtual tag"):
            _form(desk, known)


def _table(view: DashboardView, name: str) -> None:
    found = allocation.spend_of_tag(view, name)
    if not found:
        st.caption("No request in this period.")
        return
    table = [
        {
            name: row.value,
            "spend": shown_amount(row.cost_pusd),
            "attempts": row.attempts,
            "input tokens": row.input_tokens,
            "output tokens": row.output_tokens,
        }
        for row in found
    ]
    counts = st.column_config.NumberColumn(format="localized")
    columns = dict.fromkeys(("attempts", "input tokens", "output tokens"), counts)
    theme.table(table, about="tag", column_config=columns | money_columns(table, ("spend",)))
    total = formatting.money(sum(row.cost_pusd for row in found))
    st.caption(
        f"Each attempt has one value: together {formatting.quote(total)}, own engines at their "
        f"provisional charge, idle apart. {_kept(view, name)}"
    )


def _kept(view: DashboardView, name: str) -> str:
    """Return a note if sums by key or tag lack the oldest attempts."""
    entry = allocation.tag_entries(view)[name]
    tag = parse_tag(name, rule_lines(entry.says or {}))
    if tag.by in ("key", "tags") and view.scope.start_us < tags.whole_from_us(view):
        return f"Attempts before {formatting.moment(tags.whole_from_us(view))} are not in it."
    return ""


def _form(desk: AdminClient, known: Mapping[str, ManualEntry]) -> None:
    chosen = st.selectbox("Which", [NEW, *known], key="virtual-which")
    entry = known.get(chosen)
    name = chosen if entry else st.text_input("Name", key="virtual-name", placeholder="product")
    text = st.text_area(
        "Rules, one a line; the first that holds gives the value",
        "\n".join(rule_lines(entry.says)) if entry and entry.says else "",
        key=f"virtual-rules-{chosen}",
        placeholder=PLACEHOLDER,
        help="VALUE: team=A|B, model=C. Beside team the rules of one tag look at model, or at key "
        "(an id), or at tag:NAME.",
    )
    lines = text.splitlines()
    if text.strip() and name:
        try:
            parse_tag(name, lines)
        except VirtualTagError as error:
            for fault in str(error).splitlines():
                st.error(formatting.quote(fault), icon=":material/edit_note:")
    left, right = st.columns(2)
    if left.button("Enter the tag", key="virtual-enter", disabled=not (name and text.strip())):
        confirmation.send_change(TAGS, desk, "/virtual-tags", name=name, rules=lines)
        words = "counts for all requests of the books"
        confirmation.report_done(TAGS, f"The virtual tag {formatting.quote(name)} {words}.")
    if entry and right.button("Withdraw it", key="virtual-withdraw", icon=":material/undo:"):
        confirmation.send_change(TAGS, desk, "/virtual-tags/withdraw", name=name)
        confirmation.report_done(TAGS, f"The virtual tag {formatting.quote(name)} is withdrawn.")
