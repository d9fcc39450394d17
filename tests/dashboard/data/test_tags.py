"""What was spent by hour is what the survey says was spent."""

from dashboard import viewer_identity
from dashboard.data import reads, tags


def test_hours_add_up_to_the_period(month) -> None:
    now_us = reads.rounded_now_us(0)
    view = reads.DashboardView(
        month.url, "30 d", None, now_us, who=lambda: viewer_identity.AT_THIS_MACHINE
    )
    whole = sum(cell.cost_pusd for cell in reads.spending(view).cells)
    assert sum(tags.spent_by_hour(view).values()) == whole > 0
