"""The verdict of a view: the fleet's, whatever team and basis; none for who sees single teams."""

from dataclasses import replace

import pytest
import streamlit as st

from dashboard import viewer_identity
from dashboard.data import reads, verdicts
from dashboard.data.reads import DashboardView
from dashboard.viewer import NotAllowed, Viewer
from ledger.economics.cost import TokenBasis
from ledger.identity.people import DashboardRole


def test_team_and_basis_change_nothing(month) -> None:
    who = viewer_identity.AT_THIS_MACHINE
    view = DashboardView(month.url, "30 d", None, month.now_us, who=lambda: who)
    found = verdicts.fleet(view)
    assert found == verdicts.fleet(replace(view, team="search", basis=TokenBasis.OUTPUT))
    assert found == reads.survey(view).verdict
    st.cache_resource.clear()


def test_who_sees_single_teams_sees_none(month) -> None:
    limited = Viewer("ada", DashboardRole.VIEWER, ("search",))
    view = DashboardView(month.url, "30 d", "search", month.now_us, who=lambda: limited)
    with pytest.raises(NotAllowed):
        verdicts.fleet(view)
