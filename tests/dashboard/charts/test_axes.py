"""Axes and legends: no two labels read alike, small money is in full, a plot keeps its height."""

import functools
from datetime import UTC, datetime, timedelta

import altair as alt
import pytest
from altair.utils.schemapi import SchemaValidationError, debug_mode

from dashboard.charts import axes, plots
from dashboard.theme import TrustedChart
from ledger.reports.series import SpendSeries

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


@pytest.mark.parametrize("bars", [1, 2, 5, 10, 59, 60, 61, 120, 300, 1439, 5000, 43_200, 500_000])
def test_no_two_ticks_of_a_time_axis_read_the_same(bars: int) -> None:
    """Labels were minutes while ticks were seconds: the same minute stood there several times."""
    first = DAY + timedelta(hours=11, minutes=58)
    records = [
        {"at": at, "until": at + timedelta(minutes=1), "kind": SpendSeries.API.value, "usd": 1.0}
        for at in (first, first + timedelta(minutes=bars - 1))
    ]
    chart = plots.stacked_chart(
        records, value="usd", colours=plots.money_colours(), title="dollars"
    )
    x = chart.to_dict()["encoding"]["x"]
    ticks = [instant(tick) for tick in x["axis"]["values"]]
    labels = [f"{tick:{x['axis']['format']}}" for tick in ticks]
    assert len(labels) == len(set(labels))
    assert 1 <= len(labels) <= axes.MOST_TICKS + 1
    low, high = map(instant, x["scale"]["domain"])
    assert (low, high) == (first, first + timedelta(minutes=bars))
    assert all(low <= tick <= high for tick in ticks)


def test_values_are_handed_on_and_not_copied() -> None:
    """Judged and copied one by one, thousands of points took most of a page's time."""
    values = [{"a": 1.0}, {"a": 2.0}]
    given = axes.inline_data(values)
    chart = alt.layer(alt.Chart(given).mark_point(), alt.Chart(given).mark_line())
    assert all(copied.values is given.values for copied in (given.copy(), chart.copy().data))
    (kept,) = chart.to_dict()["datasets"].values()
    assert kept == values


def test_a_chart_that_nobody_judged_is_drawn_as_it_was_judged() -> None:
    """In its process the dashboard trusts charts; here they are judged against the schema."""
    made = functools.partial(plots.predictions, [
        {"predicted": 1.0, "observed": 2.0, "kind": "API", "target": "x"}
    ])  # fmt: skip
    judged = made().to_dict()
    with debug_mode(False):
        assert TrustedChart(made()).to_dict() == judged
    wrong = made()
    wrong["height"] = "tall"
    assert TrustedChart(wrong).to_dict()["height"] == "tall"
    with pytest.raises(SchemaValidationError):  # the control: whoever judges finds it
        wrong.to_dict()


def test_one_instant_has_an_axis() -> None:
    spec = plots.lines([{"at": DAY, "kind": "a", "value": 1}], value="value", title="x").to_dict()
    low, high = map(instant, spec["encoding"]["x"]["scale"]["domain"])
    assert low < high


def test_an_axis_never_counts_in_milli() -> None:
    spec = plots.stacked_chart(
        RECORDS, value="usd", colours=plots.money_colours(), title=""
    ).to_dict()
    label = spec["encoding"]["y"]["axis"]["labelExpr"]
    assert label.startswith("abs(datum.value) < 1 ? format(datum.value, '$.2~r')")


def test_a_legend_takes_no_height_of_its_plot() -> None:
    assert axes.legend_height(["a", "b", "c"]) == 2 * axes.LEGEND_LINE
    assert axes.legend_height(["a", "b", "a name that fills a whole line"]) == 3 * axes.LEGEND_LINE
