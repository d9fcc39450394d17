"""The dashboard's finds are the ledger's, of the period that is looked at."""

from dashboard import viewer_identity
from dashboard.data import reads
from dashboard.data.content import found_content


def test_a_month_without_detectors_has_none(month) -> None:
    now_us = reads.rounded_now_us(0)
    view = reads.DashboardView(
        month.url, "30 d", None, now_us, who=lambda: viewer_identity.AT_THIS_MACHINE
    )
    assert found_content(view) == []
