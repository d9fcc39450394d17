"""The printable page: whole in itself, its figures the plan's, its texts escaped."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest

from dashboard import formatting
from dashboard.planning import BASIS, PlanInputs, PlanTraffic, plan
from dashboard.planreport import PlanFrame, report, round_top
from ledger.economics.cost import UnitPrice
from ledger.economics.purchase import Commitment, Purchase

USD = 10**12


@pytest.fixture
def made():
    traffic = PlanTraffic("a test", (6_000,) * 60, UnitPrice(10**6, BASIS), ("<b>a note</b>",))
    figures = PlanInputs(
        months=12, growth=Fraction(0), discount_per_year=Fraction(8, 100),
        pusd_per_hour=USD // 10, tokens_per_s=100, duty=Fraction(1), spares=0,
        ops_hours_per_week=Fraction(0), ops_pusd_per_hour=0,
        terms=(Commitment(12, Fraction(1, 5)),), purchase=Purchase(400 * USD, 48, Fraction(1, 5)),
    )  # fmt: skip
    return plan(traffic, figures)


def test_it_has_every_way_and_every_input(made) -> None:
    page = report(
        made,
        "H100",
        [("GPU rate", "$0.10 an hour <script>")],
        PlanFrame("Made today", ("SIMULATED: all of it",)),
    )
    for way in made.ways:
        assert formatting.money(way.npv_pusd) in page
        assert formatting.money(way.saved_pusd, sign=True) in page
    assert page.count("<polyline") == len(made.ways)
    assert "$0.10 an hour &lt;script&gt;" in page
    assert "&lt;b&gt;a note&lt;/b&gt;" in page
    assert "NPV" in page
    assert "SIMULATED: all of it" in page, "the page's labels travel with it"


def test_it_needs_nothing_from_anywhere(made) -> None:
    page = report(made, "H100", [], PlanFrame("Made today", ("SIMULATED: all of it",)))
    assert not re.search(r"<script|https?://|src=|@import|url\(", page)
    assert page.startswith("<!doctype html>")


def test_a_single_way_has_its_report_too(made) -> None:
    alone = replace(made, ways=made.ways[:1])
    assert "Enter your GPU rate" in report(
        alone, "H100", [], PlanFrame("Made today", ("SIMULATED: all of it",))
    )


def test_a_way_without_any_gpu_pays_nothing_back(made) -> None:
    none = replace(made.ways[1].option, gpus=(0,) * 12)
    odd = replace(made, ways=(made.ways[0], replace(made.ways[1], option=none, payback=1)))
    page = report(odd, "H100", [], PlanFrame("Made today"))
    assert '<td class="n">1</td></tr>' not in page


@pytest.mark.parametrize(
    ("usd", "top"), [(0.0, 1.0), (1.0, 1.0), (892_729.0, 1_000_000.0), (5.5, 6.0), (0.03, 0.04)]
)
def test_the_axis_ends_at_a_round_figure(usd: float, top: float) -> None:
    assert round_top(usd) == pytest.approx(top)
