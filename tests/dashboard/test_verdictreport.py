"""The printed verdict: whole in itself, every text escaped, what is unknown not zero."""

import re
from fractions import Fraction

from dashboard.verdictreport import verdict_page
from ledger.economics.assumptions import AssumptionSheet, PoolAssumptions
from ledger.economics.fleet_verdict import judge
from ledger.economics.value_curve import TrafficClass, TrafficWindow, ValueCurve
from ledger.economics.verdict_text import sentence
from ledger.money import PUSD_PER_USD


def test_it_has_sentence_options_and_sheet_with_the_labels_of_its_page() -> None:
    pool = PoolAssumptions("<b>p</b>", 1, Fraction(720), PUSD_PER_USD, rate_origin="<script>")
    curve = ValueCurve(
        (TrafficClass("chat", PUSD_PER_USD, True),), (TrafficWindow((100,), (0,)),), 1, 100, (0,)
    )
    found = judge(AssumptionSheet((pool,)), {"<b>p</b>": curve})
    page = verdict_page(found, ["SIMULATED: all of it"], "Made today.")
    assert f"<h1>{sentence(found)}</h1>" in page
    assert "SIMULATED: all of it" in page
    assert "not entered" in page
    assert "&lt;b&gt;p&lt;/b&gt;" in page
    assert not re.search(r"<script|https?://|src=|@import|url\(", page)
