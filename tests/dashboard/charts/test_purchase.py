"""The chart of a plan: every way by a colour and a dash, and money in words."""

from dashboard.charts.purchase import cumulative, tornado

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


def test_the_widest_bar_stands_first() -> None:
    records = [
        {"name": name, "end": end, "usd": usd, "order": place}
        for place, name in enumerate(("rate", "ops"))
        for end, usd in (("-20 %", 3.0 - place), ("+20 %", place - 3.0))
    ]
    spec = tornado(records, share=20).to_dict()
    assert spec["encoding"]["y"]["sort"] == ["rate", "ops"]
    (values,) = spec["datasets"].values()
    assert {value["kind"] for value in values} == set(spec["encoding"]["color"]["scale"]["domain"])
