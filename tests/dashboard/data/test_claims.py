"""The dashboard's sum of claims is the ledger's, of the period that is looked at."""

from dashboard import viewer_identity
from dashboard.data import reads
from dashboard.data.claims import claimed
from ledger.queries.claims import ClaimTotal


def test_a_month_without_claims_has_none(month) -> None:
    now_us = reads.rounded_now_us(0)
    view = reads.DashboardView(
        month.url, "30 d", None, now_us, who=lambda: viewer_identity.AT_THIS_MACHINE
    )
    assert claimed(view) == ClaimTotal(0, 0)
