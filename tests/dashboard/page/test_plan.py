"""The purchase page: its figures are `ledger.economics.purchase`'s; what is missing is asked
for."""

import re
from fractions import Fraction

from dashboard import formatting
from dashboard.data import reads
from dashboard.planning import of_ledger
from ledger.database import migrate
from ledger.economics.cost import TokenBasis
from ledger.economics.purchase import DemandProfile, stay
from ledger.economics.step_cost import load_curve
from ledger.queries.reads import DAY_US, Scope
from ledger.reports.survey import survey


def traffic_of(url: str, now_us: int):
    with reads.open_readonly(url).connect() as connection:
        scope = Scope.last(30 * DAY_US, now_us)
        look = survey(connection, scope, bucket_us=DAY_US, basis=TokenBasis.INPUT_OUTPUT)
    return of_ledger(look)


def test_staying_costs_what_the_formula_says(page, month, text_of, monkeypatch) -> None:
    """Of one instant: the page's period moves on each 20 s, and a cent with it."""
    monkeypatch.setattr(reads, "rounded_now_us", lambda _: month.now_us)
    shown = text_of(page("plan", month.url))
    first = traffic_of(month.url, month.now_us)[0]
    assert first.name == "what went to APIs, at what they charged"
    alone = stay(DemandProfile(load_curve(first.minutes), first.hours, first.average), months=36)
    npv = formatting.money(alone.npv_pusd(Fraction(8, 100)))
    assert re.search(rf"stay with the API\s+{re.escape(npv)}", shown)


def test_the_rate_moves_the_answer_and_its_lack_is_asked_for(page, month, text_of) -> None:
    test = page("plan", month.url)
    test.number_input(key="rate-L4").set_value(400.0).run()
    assert not test.exception
    assert "Stay with the API for this traffic, for 36 months" in text_of(test)
    test.number_input(key="rate-L4").set_value(0.0).run()
    assert not test.exception
    shown = text_of(test)
    assert "Enter your GPU rate to see the ways out" in shown
    assert len(test.get("vega_lite_chart")) == 0


def test_a_purchase_is_a_way_once_it_has_a_price(page, month, text_of) -> None:
    test = page("plan", month.url)
    assert "buy, " not in text_of(test)
    test.number_input(key="price").set_value(2_500.0).run()
    assert not test.exception
    assert re.search(r"buy, 1 x L4\s+\$", text_of(test))
    offered = [button.key for button in test.get("download_button")]
    assert offered == ["verdict-csv", "plan-report"], "the GPUs' own verdict, and this plan"


def test_books_without_traffic_ask_for_an_export(page, tmp_path, text_of) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    migrate(url)
    shown = text_of(page("plan", url))
    assert "Export usage grouped by model" in shown
    assert "$0" not in shown


def test_the_verdict_stands_first_and_no_other_answer_of_the_same_gpus(
    page, month, text_of
) -> None:
    shown = text_of(page("plan", month.url))
    assert shown.index("Keep 1 GPU, worth") < shown.index("GPUs for what goes to APIs")
    assert "(ops not entered)" not in shown, "the contract has them"
    assert "Ways to pay for pool llama-70b" in shown
    assert re.search(r"Keep 1 GPU: \$[\d.,]+ a month", shown), "what can be compared between ways"
    for way in ("as contracted, $0.40", "reserved for 12 months, $0.32", "36 months, $0.24"):
        assert way in shown


def test_one_gpu_s_break_even_is_told_in_the_form_s_own_terms(page, month, text_of) -> None:
    """The speed that would do was once told for all hours: below the speed that is entered."""
    test = page("plan", month.url)
    shown = text_of(test)
    speed = next(box for box in test.number_input if box.label.startswith("Tokens a second"))
    duty = next(box for box in test.number_input if box.label.startswith("Hours in use"))
    assert f"In use {duty.value:g} % of the time it can serve" in shown
    needed = re.search(r"([\d.,]+)(k?)\s+tokens a second of one GPU", shown)
    assert needed is not None, shown
    factor = 1_000 if needed[2] else 1
    assert float(needed[1].replace(",", "")) * factor > speed.value
    assert "an hour, with ops, divided by" in shown, "the contract has them"
    assert re.search(
        r"This traffic alone pays for (no rate|a rate of at most \$[\d.]+ an hour)\.", shown
    )
