"""The waterfall's records: a row a span, several tries told apart."""

from dashboard.charts.timeline import COLOURS, spans
from ledger.reports.waterfall import AttemptFacts, AttemptWaterfall, WaterfallSpan
from ledger.reports.waterfall import spans as made

ONE = AttemptWaterfall(
    "r.1", "pool:a/0", "ok", (WaterfallSpan("gateway", 0, 2_000, "measured"),), None
)


def test_a_span_is_a_row_in_milliseconds():
    assert spans([ONE]) == [
        {
            "row": "gateway", "kind": "gateway", "from": 0.0, "to": 2.0, "ms": 2.0,
            "how": "measured", "target": "pool:a/0",
        }
    ]  # fmt: skip


def test_several_tries_are_told_apart():
    assert [span["row"] for span in spans([ONE, ONE])] == [
        "1. pool:a/0: gateway", "2. pool:a/0: gateway",
    ]  # fmt: skip


def test_every_kind_of_span_has_its_colour():
    kinds = set()
    for ttft in (None, 5):
        for known in (None, 2):
            facts = AttemptFacts("r", "t", "ok", 0, 0, 9, ttft, 9, known, known)
            kinds |= {made_value.what for made_value in made(facts, 0)}
    assert kinds == set(COLOURS)
