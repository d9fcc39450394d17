"""Bills beside the books: two bars a day, money in words."""

from dashboard.charts.bills import BOOKED, COLOURS, INVOICED, compare_chart


def test_both_bars_of_a_day() -> None:
    records = [
        {"day": "2026-11-01", "kind": kind, "usd": 2.5} for kind in (INVOICED, BOOKED)
    ]  # fmt: skip
    spec = compare_chart(records).to_dict()
    assert spec["encoding"]["color"]["scale"]["domain"] == list(COLOURS)
    assert spec["encoding"]["y"]["title"] == "dollars a day"
    (values,) = spec["datasets"].values()
    assert [value["shown"] for value in values] == ["$2.50", "$2.50"]
