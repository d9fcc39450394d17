"""What was entered, as the books have it."""

from dashboard import viewer_identity
from dashboard.data import entries
from dashboard.data.reads import DashboardView


def test_rates_and_projects_of_a_month_that_has_none_entered(month) -> None:
    view = DashboardView(
        month.url, "30 d", None, month.now_us, who=lambda: viewer_identity.AT_THIS_MACHINE
    )
    versions, entered = entries.rates(view)
    assert [(version.pool, version.gpus) for version in versions] == [("llama-70b", 1)]
    assert (entered, entries.projects(view)) == ([], [])
