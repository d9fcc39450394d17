"""What the sidebar offers first is what a chip that is taken back leads to."""

from dashboard.data.reads import PERIODS
from dashboard.page_choices import EVERYONE, USUAL


def test_the_usual_period_is_on_offer() -> None:
    assert USUAL in PERIODS
    assert EVERYONE == "All teams"
