"""The dashboard's sum of hits is the ledger's, of the period that is looked at."""

from dashboard import viewer_identity
from dashboard.data import reads
from dashboard.data.cache_hits import cached
from ledger.queries.cache_hits import CacheTotal


def test_a_month_without_a_cache_has_no_hits(month) -> None:
    now_us = reads.rounded_now_us(0)
    view = reads.DashboardView(
        month.url, "30 d", None, now_us, who=lambda: viewer_identity.AT_THIS_MACHINE
    )
    assert cached(view) == CacheTotal(0, 0, 0, 0)
