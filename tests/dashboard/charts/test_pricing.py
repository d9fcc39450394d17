"""What moves most is drawn; what moves beyond the chart is cut there and says its figure."""

from dashboard.charts import pricing


def entry(name: str, percent: float | None, tier: str = "standard") -> dict:
    price = {"kind": "input", "tier": tier, "above_tokens": 0, "percent": percent}
    return {"name": name, "prices": [price]}


def test_the_furthest_move_first_and_tiers_are_left_to_the_table() -> None:
    found = pricing.moved_prices(
        [entry("a", 10.0), entry("b", -40.0), entry("c", None), entry("d", 900.0),
         entry("e", 50.0, "batch")]
    )  # fmt: skip
    assert [(finding["name"], finding["percent"], finding["shown"]) for finding in found] == [
        ("d, input", 200.0, "+900 %"), ("b, input", -40.0, "-40 %"), ("a, input", 10.0, "+10 %"),
    ]  # fmt: skip
    chart = pricing.changes_chart(found).to_dict()
    assert chart["layer"][0]["encoding"]["y"]["sort"] == [finding["name"] for finding in found]
