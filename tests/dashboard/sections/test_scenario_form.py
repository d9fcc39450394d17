"""Sliders move the crossing as the formula says, and what would have to be true is said."""

import re

import pytest


def even(shown: str) -> float:
    found = re.search(
        r"Break-even in [^,]+, tokens a month \(input \+ output\)\s+([0-9.]+)M", shown
    )
    return float(found.group(1))


def test_the_rate_moves_break_even_in_proportion(page, month, text_of) -> None:
    """Ops are 720 / 168 x $10 a month, the GPU $288."""
    test = page("breakeven", month.url)
    before = even(text_of(test))
    test.number_input(key="x-rate").set_value(0.8).run()
    assert not test.exception
    ops = 720 / 168 * 10
    assert even(text_of(test)) / before == pytest.approx((576 + ops) / (288 + ops), rel=0.01)


def test_prices_volume_and_redundancy_move_what_they_should(page, month, text_of) -> None:
    test = page("breakeven", month.url)
    before = even(text_of(test))
    test.slider(key="x-price").set_value(200).run()
    assert even(text_of(test)) == pytest.approx(before / 2, rel=0.01)
    test.slider(key="x-price").set_value(100)
    test.number_input(key="x-spares").set_value(1).run()
    assert not test.exception
    assert even(text_of(test)) > 1.8 * before


def test_what_would_have_to_be_true_and_the_scenarios_name(page, month, text_of) -> None:
    test = page("breakeven", month.url)
    shown = text_of(test)
    assert "What would have to be true, each alone" in shown
    assert re.search(r"API price per 1M tokens\s+at least \$[0-9.]+ \(is \$[0-9.]+\)", shown)
    test.text_input(key="scenario").set_value("Half the rate")
    test.slider(key="x-volume").set_value(1000)
    test.number_input(key="x-rate").set_value(0.001).run()
    assert not test.exception
    shown = text_of(test)
    assert "Break-even in Half the rate" in shown
    assert "How far each may move until it no longer pays" in shown


def test_an_address_with_a_number_that_cannot_be_says_so(page, month, text_of) -> None:
    """It hung for minutes, or drew the figures of another number than the one in the field."""
    before = text_of(page("breakeven", month.url))
    for typed in (1e99, -1.0):
        test = page("breakeven", month.url)
        test.number_input(key="x-rate").set_value(typed).run()
        assert not test.exception
        (said,) = [error.value for error in test.error]
        assert said.endswith("Counted: 0.4.")
        assert even(text_of(test)) == even(before)


def test_the_other_basis_says_why_nothing_can_be_turned(page, month, text_of) -> None:
    test = page("breakeven", month.url)
    test.segmented_control(key="basis").set_value("output only").run()
    assert not test.exception
    assert "Scenarios count input + output tokens" in text_of(test)


@pytest.mark.long
def test_the_next_step_is_said(page, books, text_of) -> None:
    shown = text_of(page("breakeven", books(peak=60.0, days=8).url, period="7 d"))
    found = re.search(
        r"The next step, ([0-9]+) GPUs, pays from +([0-9.]+)([MB]) +tokens a month", shown
    )
    assert found, shown[:600]
    assert int(found.group(1)) >= 2
