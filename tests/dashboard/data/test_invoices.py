"""Reads of bills: none of them is for who sees single teams."""

import pytest
import streamlit as st

from dashboard import viewer_identity
from dashboard.data import invoices
from dashboard.data.reads import DashboardView
from dashboard.viewer import NotAllowed, Viewer
from ledger.identity.people import DashboardRole


def test_books_without_a_bill_have_none(month) -> None:
    who = viewer_identity.AT_THIS_MACHINE
    view = DashboardView(month.url, "30 d", None, month.now_us, who=lambda: who)
    assert invoices.bills(view) == []
    assert invoices.adjustments(view) == []
    st.cache_resource.clear()


def test_bills_are_not_for_who_sees_single_teams(month) -> None:
    limited = Viewer("ada", DashboardRole.VIEWER, ("search",))
    view = DashboardView(month.url, "30 d", "search", month.now_us, who=lambda: limited)
    with pytest.raises(NotAllowed):
        invoices.bills(view)
