"""Changes to both sides of nothing, and a week by its hours."""

from dashboard.charts.spend import DAYS, LESS, MORE, changes_chart, week


def test_a_change_has_its_side_and_its_words() -> None:
    spec = changes_chart([{"name": "a", "usd": 2.5}, {"name": "b", "usd": -1.0}]).to_dict()
    (values,) = spec["datasets"].values()
    assert [(value["kind"], value["shown"]) for value in values] == [
        (MORE, "$2.50"),
        (LESS, "-$1.00"),
    ]
    assert spec["encoding"]["y"]["sort"] == ["a", "b"]


def test_an_hour_of_the_week_is_a_square() -> None:
    spec = week([{"day": 0, "hour": 9, "usd": 0.5}]).to_dict()
    (values,) = spec["datasets"].values()
    assert values[0]["name"] == DAYS[0]
    assert "UTC" in spec["encoding"]["x"]["title"]
