"""Steps of rates: one colour a pool, an axis from zero, a line where now is."""

from datetime import UTC, datetime

from dashboard.charts import rates

AT = datetime(2026, 11, 2, tzinfo=UTC)


def test_the_axis_begins_at_nothing_and_has_room_above() -> None:
    record = {"at": AT, "kind": "a", "usd": 2.0, "by": "x", "said": True}
    chart = rates.steps([record], colours={"a": "#0F766E"}, now=AT).to_dict()
    (line, *_) = chart["layer"]
    assert line["encoding"]["y"]["scale"]["domain"] == [0, 2.4]
    assert line["mark"]["interpolate"] == "step-after"
