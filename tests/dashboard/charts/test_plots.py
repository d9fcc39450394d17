"""Charts are valid, in one palette, in UTC; the same name has the same colour on every page."""

from datetime import UTC, datetime, timedelta

import pytest

from dashboard import theme
from dashboard.charts import plots

DAY = datetime(2026, 6, 1, tzinfo=UTC)
RECORDS = [
    {"at": DAY + timedelta(days=n), "until": DAY + timedelta(days=n + 1), "kind": kind, "usd": 1.0}
    for n in range(3)
    for kind in plots.money_colours()
]


def instant(stated: dict) -> datetime:
    """Vega's way to state an instant; it takes a bare number for a year."""
    assert stated["utc"]
    names = ("year", "month", "date", "hours", "minutes", "seconds")
    return datetime(*(stated[name] for name in names), tzinfo=UTC)


def test_stacked_bars() -> None:
    chart = plots.stacked_chart(
        RECORDS, value="usd", colours=plots.money_colours(), title="dollars"
    )
    spec = chart.to_dict()
    assert spec["encoding"]["x"]["scale"]["type"] == "utc"
    assert spec["encoding"]["color"]["scale"]["range"] == [
        theme.OWN,
        theme.LIGHT.idle,
        theme.DOWN,
        theme.OPS,
        theme.API,
    ]
    (values,) = spec["datasets"].values()
    assert len(values) == len(RECORDS)
    assert values[0]["at"] == DAY.timestamp() * 1000
    order = {row["kind"]: row["order"] for row in values}
    assert list(order) == [kind for kind in plots.money_colours() if kind in order]


def test_a_pile_has_no_gap_and_keeps_to_its_time() -> None:
    """Bars of so many pixels lay over each other on a phone."""
    spec = plots.stacked_chart(
        RECORDS, value="usd", colours=plots.money_colours(), title="dollars"
    ).to_dict()
    (values,) = spec["datasets"].values()
    piles: dict[float, float] = {}
    for row in values:
        assert row["low"] == pytest.approx(piles.get(row["at"], 0.0))
        piles[row["at"]] = row["high"]
        assert row["high"] - row["low"] == pytest.approx(row["usd"])
        assert row["at"] < row["left"] < row["right"] < row["until"]


def test_tooltips_show_small_amounts() -> None:
    """A format of cents showed what a request cost as nothing."""
    records = [{**RECORDS[0], "usd": 3.3e-8}, {**RECORDS[1], "usd": 12.5}]
    spec = plots.stacked_chart(
        records, value="usd", colours=plots.money_colours(), title="$"
    ).to_dict()
    assert spec["encoding"]["tooltip"][-1]["field"] == "shown"
    (values,) = spec["datasets"].values()
    assert [row["shown"] for row in values] == ["$0.000000033", "$12.50"]


def test_lines_name_every_kind() -> None:
    records = [{"at": DAY, "kind": kind, "value": 1} for kind in ("b", "a")]
    spec = plots.lines(records, value="value", title="x").to_dict()
    assert spec["encoding"]["color"]["scale"]["domain"] == ["a", "b"]
    assert spec["encoding"]["y"]["axis"]["tickMinStep"] == 1


def test_each_of_many_lines_is_named() -> None:
    """From the ninth on, engines had a colour and no name."""
    names = [f"pool:a/{n}" for n in range(17)]
    records = [{"at": DAY, "kind": name, "value": 1.0} for name in names]
    scale = plots.lines(records, value="value", title="s").to_dict()["encoding"]["color"]["scale"]
    assert scale["domain"] == sorted(names)
    assert len(scale["range"]) == len(names)


def test_ranked_bars_carry_their_figures() -> None:
    records = [{"name": "first token would come too late", "value": 3}]
    spec = plots.ranked_chart(
        records, value="value", title="n", form=",.0f", colour="#000"
    ).to_dict()
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["bar", "text"]


def test_predictions_have_a_diagonal_over_their_range() -> None:
    records = [
        {"target": "x", "kind": "API", "predicted": 0.5, "observed": 2.0},
        {"target": "y", "kind": "own engine", "predicted": 0.0001, "observed": 0.1},
    ]
    spec = plots.predictions(records).to_dict()
    diagonal = spec["datasets"][spec["layer"][0]["data"]["name"]]
    assert diagonal == [{"predicted": end, "observed": end} for end in (0.001, 2.0)]


@pytest.mark.parametrize("top", [0.0, 0.0003, 0.0095, 0.039, 0.04, 0.3, 0.97])
def test_no_two_ticks_of_a_share_read_the_same(top: float) -> None:
    """Thousandths under labels of whole percents read `0%  0%  1%`."""
    records = [{"at": DAY + timedelta(hours=n), "kind": "a", "value": top * n} for n in (0, 1)]
    y = plots.lines(records, value="value", title="share", form=plots.SHARE).to_dict()["encoding"][
        "y"
    ]
    digits = int(y["axis"]["format"][1])
    assert y["axis"]["tickMinStep"] >= 10.0 ** (-2 - digits)
    low, high = y["scale"]["domain"]
    assert low == 0
    assert high >= max(top, 4 * y["axis"]["tickMinStep"])


def test_other_lines_keep_their_scale() -> None:
    records = [{"at": DAY + timedelta(hours=n), "kind": "a", "value": n} for n in (0, 1)]
    assert "scale" not in plots.lines(records, value="value", title="x").to_dict()["encoding"]["y"]
