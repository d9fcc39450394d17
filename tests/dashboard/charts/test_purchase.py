"""The chart of a plan: every way by a colour and a dash, and money in words."""

from dashboard.charts.purchase import cumulative, options

RECORDS = [
    {"month": month, "usd": 10.0 * month, "kind": kind}
    for kind in ("stay", "rent")
    for month in range(3)
]


def test_each_way_has_its_colour_and_its_dash() -> None:
    spec = cumulative(RECORDS, colours={"stay": "#111", "rent": "#222"}).to_dict()
    assert spec["encoding"]["color"]["scale"] == {
        "domain": ["stay", "rent"], "range": ["#111", "#222"],
    }  # fmt: skip
    (values,) = spec["datasets"].values()
    assert {(value["kind"], value["dash"]) for value in values} == {("stay", "0"), ("rent", "1")}
    assert {value["shown"] for value in values} == {"$0.00", "$10.00", "$20.00"}
    assert spec["encoding"]["y"]["title"] == "dollars paid until then"


def test_options_stand_in_order_and_their_parts_are_stacked() -> None:
    records = [
        {"name": name, "kind": kind, "usd": usd}
        for name in ("1 GPU (best)", "2 GPUs (now)")
        for kind, usd in (("GPUs", 360.0), ("APIs", 111.78))
    ]
    spec = options(records, colours={"GPUs": "#111", "ops": "#222", "APIs": "#333"}).to_dict()
    assert spec["encoding"]["y"]["sort"] == ["1 GPU (best)", "2 GPUs (now)"]
    (values,) = spec["datasets"].values()
    assert {(value["kind"], value["place"]) for value in values} == {("GPUs", 0), ("APIs", 2)}
    assert values[1]["shown"] == "$111.78"
