"""What was spent by hour is what the survey says was spent."""

from dashboard import data, data_tags, entrance


def test_hours_add_up_to_the_period(month) -> None:
    now_us = data.rounded_now_us(0)
    view = data.DashboardView(month.url, "30 d", None, now_us, who=lambda: entrance.AT_THIS_MACHINE)
    whole = sum(cell.cost_pusd for cell in data.spending(view).cells)
    assert sum(data_tags.spent_by_hour(view).values()) == whole > 0
