"""Bars end at the limit or where they were cut; a tick where a forecast is known."""

import pytest

from dashboard.charts import budgets

BAR = {"name": "a, day", "kind": budgets.SPENT, "low": 0.0, "high": 0.4, "shown": "$4",
       "limit": "$10", "told": "x", "forecast": 0.7}  # fmt: skip


@pytest.mark.parametrize(
    ("high", "forecast", "end"), [(0.4, 0.7, 1.05), (1.0, 1.5, 1.575), (1.0, 90.0, 2.0)]
)
def test_the_axis_holds_what_is_near_the_limit(high: float, forecast: float, end: float) -> None:
    chart = budgets.bars([{**BAR, "high": high, "forecast": forecast}]).to_dict()
    assert chart["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, pytest.approx(end)]
