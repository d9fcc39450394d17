"""The chart's page: both comparators, both token bases, spares, and what is missing."""

import re
from fractions import Fraction

import pytest

from dashboard.page_breakeven import believed
from ledger.database import migrate


def test_both_comparators_and_the_basis_are_named(page, month, text_of) -> None:
    test = page("breakeven", month.url)
    shown = text_of(test)
    assert "Dollars per 1M tokens, input + output" in shown
    for name in ("anthropic/claude-haiku-4-5", "deepinfra/llama-3.3-70b"):
        assert name in shown
    assert "Break-even against the substitute model:" in shown
    assert len(test.get("vega_lite_chart")) == 1


def test_the_other_basis_changes_figures_and_names(page, month, text_of) -> None:
    test = page("breakeven", month.url)
    before = re.search(r"substitute model:\s+(\S+)", text_of(test)).group(1)
    test.segmented_control(key="basis").set_value("output only").run()
    assert not test.exception
    shown = text_of(test)
    assert "Dollars per 1M tokens, output only" in shown
    assert re.search(r"substitute model:\s+(\S+)", shown).group(1) != before


def test_break_even_volume_equals_fixed_cost_over_the_average_avoided_price(
    page, month, text_of
) -> None:
    good = [
        last for first, last in month.pairs if first.backend == "own" and last.slo_met
    ]  # fmt: skip
    tokens = sum(one.tokens.input + one.tokens.cached + one.tokens.output for one in good)
    avoided = sum(one.compared[0].cost_pusd for one in good)
    fixed_month = 720 * 0.4 + 720 / 168 * 10
    volume = fixed_month / (avoided / 1e12 / tokens)
    shown = re.search(r"substitute model:\s+([0-9.]+)M", text_of(page("breakeven", month.url)))
    assert float(shown.group(1)) == pytest.approx(volume / 1e6, rel=0.005)


def test_a_spare_gpu_costs_and_the_best_number_follows(page, books, text_of) -> None:
    filled = books(peak=60.0, days=8)
    test = page("breakeven", filled.url, period="7 d")
    assert not test.exception
    before = text_of(test)
    test.number_input(key="spares").set_value(2).run()
    assert not test.exception
    assert text_of(test) != before


def test_what_is_missing_is_asked_for(page, books, tmp_path, text_of) -> None:
    unrated = books(rate_pusd=None, peak=3.0, days=2)
    assert "Enter your GPU rate for `llama-70b`" in text_of(page("breakeven", unrated.url))
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    migrate(url)
    assert "A break-even chart needs own engines" in text_of(page("breakeven", url))


@pytest.mark.parametrize(
    ("explained", "said", "warned"),
    [
        (None, ".", False),
        (Fraction(0), "; so counted it is 0 % of what really spilled", True),
        (Fraction(49, 100), "it is 49 % of", True),
        (Fraction(1, 2), "it is 50 % of", False),
    ],
)
def test_a_model_that_does_not_explain_what_spilled_says_so(explained, said, warned) -> None:
    text = believed(explained)
    assert said in text
    assert ("costs with fewer GPUs are too low" in text) is warned
