"""Two sets beside each other: units on each axis, every figure as it was given."""

from datetime import UTC, datetime, timedelta

from dashboard.charts import policies
from dashboard.charts.policies import CHARGED, FIXED

NAMES = ["this set", "in force"]
AT = datetime(2026, 11, 1, tzinfo=UTC)


def values(chart) -> list[dict]:
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def test_dollars_stand_in_two_parts_with_their_sum() -> None:
    records = [
        {"set": name, "kind": kind, "usd": usd}
        for name, usd in zip(NAMES, (2.0, 3.0), strict=True)
        for kind in (FIXED, CHARGED)
    ]
    chart = policies.dollars(records, NAMES)
    assert {item["shown"] for item in values(chart) if "end" in item} == {"$4.00", "$6.00"}
    bars = chart.to_dict()["layer"][0]["encoding"]
    assert bars["x"]["title"] == "dollars in that time"
    assert bars["color"]["scale"]["domain"] == [FIXED, CHARGED]
    empty = [{**record, "usd": 0.0} for record in records]
    assert policies.dollars(empty, NAMES).to_dict(), "nothing was spent"


def test_shares_have_a_mark_where_something_is_promised() -> None:
    records = [
        {"row": "chat", "kind": name, "share": 0.9, "promise": promise, "more": "9 requests"}
        for name, promise in zip(NAMES, (0.99, None), strict=True)
    ]
    spec = policies.shares(records, NAMES, "share of requests", whole=True).to_dict()
    assert len(spec["layer"]) == 3
    assert spec["layer"][0]["encoding"]["x"]["title"] == "share of requests"
    without = [{**record, "promise": None} for record in records]
    spec = policies.shares(without, NAMES, "share", whole=False).to_dict()
    assert len(spec["layer"]) == 2
    assert policies.shares([], NAMES, "share", whole=False).to_dict()


def test_load_over_time_names_both_units() -> None:
    records = [
        {"kind": name, "at": at, "kv_ratio": 0.1 * at} for name in NAMES for at in (0.0, 1.0, 2.0)
    ]
    spec = policies.over_time_chart(
        records, NAMES, "kv_ratio", ("hours", "KV cache in use"), ".0%"
    ).to_dict()
    assert spec["encoding"]["x"]["title"] == "hours"
    assert spec["encoding"]["y"]["title"] == "KV cache in use"
    assert spec["encoding"]["color"]["scale"]["domain"] == NAMES


def test_a_set_that_came_in_force_is_a_rule_with_its_number() -> None:
    records = [
        {"at": AT + timedelta(hours=n), "until": AT + timedelta(hours=n + 1), "value": 0.1 * n,
         "kind": "spilled to APIs"} for n in range(5)
    ]  # fmt: skip
    marks = [{"at": AT + timedelta(hours=2), "label": "v3", "told": "policies 3 by ada"}]
    spec = policies.marked_chart(records, marks, "share").to_dict()
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["line", "rule", "text"]
    found = [row for rows in spec["datasets"].values() for row in rows if "label" in row]
    assert {(finding["label"], finding["told"]) for finding in found} == {
        ("v3", "policies 3 by ada")
    }
    assert policies.marked_chart(records, [], "share").to_dict()["mark"]["type"] == "line"


def test_flows_show_their_dollars() -> None:
    records = [
        {"name": "pool:a|to openai/b", "from": "pool:a", "to": "openai/b", "requests": 7,
         "shown": "+$1.00", "beside": "7, +$1.00"}
    ]  # fmt: skip
    chart = policies.flows_chart(records)
    assert values(chart)[0]["beside"] == "7, +$1.00"
    assert "split(datum.label" in str(chart.to_dict())
