"""What was imported is shown for the days that are looked at."""

from dashboard import viewer_identity
from dashboard.data import reads
from dashboard.data.spend_history import history


def test_a_month_without_an_import_has_none(month) -> None:
    now_us = reads.rounded_now_us(0)
    view = reads.DashboardView(
        month.url, "30 d", None, now_us, who=lambda: viewer_identity.AT_THIS_MACHINE
    )
    assert history(view) == ()
