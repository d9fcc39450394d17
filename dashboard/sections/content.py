"""Section of content finds and policy actions: kinds and counts, never a text."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dashboard import theme
from dashboard.data.content import found_content
from dashboard.data.reads import DashboardView
from ledger.queries.content import ContentCount

WORDS = {
    "mask": "masked", "keep_inside": "kept inside", "refuse": "refused",
    "record": "recorded", "mask keep_inside": "masked and kept inside",
}  # fmt: skip


def show(view: DashboardView) -> None:
    """Draw a table if policies found any content."""
    found = found_content(view)
    if not found:
        return
    st.subheader("Content that was found", anchor="content")
    theme.table(table(found), about="content")


def table(found: Sequence[ContentCount]) -> list[dict[str, Any]]:
    return [
        {
            "kind": count.kind,
            "what was done": WORDS.get(count.done, count.done),
            "requests": count.requests,
            "finds": count.finds,
        }
        for count in found
    ]
