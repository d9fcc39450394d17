"""What if: the verdict's own sheet, changed; what differs is named and judged alike."""

import re


def worths(shown: str) -> list[str]:
    return re.findall(
        r"(?:Keep|Reduce to|Add to|Leave)[^,(]*, worth (\S+) a month", shown.replace("\\", "")
    )


def test_as_long_as_nothing_is_changed_there_is_one_verdict(page, month, text_of) -> None:
    shown = text_of(page("breakeven", month.url))
    assert len(worths(shown)) == 1
    assert "Change a value" in shown


def test_a_rate_is_judged_beside_the_sheets_own(page, month, text_of) -> None:
    """The next GPU costs as much as the rate says, whatever it avoids."""
    test = page("breakeven", month.url)
    test.number_input(key="x-rate").set_value(0.8).run()
    assert not test.exception
    shown = text_of(test)
    today, changed, again = worths(shown)
    assert today == again
    assert round(float(changed[1:]) - float(today[1:]), 2) == 288.0, "720 h at 40 cents more"
    assert "With your changes: GPU rate" in shown


def test_ops_count_once_hours_and_their_price_are_entered(page, month, text_of) -> None:
    test = page("breakeven", month.url)
    test.number_input(key="x-ops").set_value(2.0).run()
    assert len(worths(text_of(test))) == 1
    assert "Ops count once both are entered" in text_of(test)
    test.number_input(key="x-ops-rate").set_value(95.0).run()
    assert not test.exception
    assert "ops $814.29" in text_of(test)


def test_what_is_declared_movable_needs_a_price_and_then_may_leave(page, month, text_of) -> None:
    test = page("breakeven", month.url)
    (name,) = test.multiselect(key="x-movable").options
    test.multiselect(key="x-movable").set_value([name]).run()
    assert "without one it stays" in text_of(test)
    test.number_input(key="x-movable-price").set_value(1.0).run()
    assert not test.exception
    shown = text_of(test)
    assert "Leave, worth" in shown
    assert "no own GPU and all of it at APIs cost" in shown


def test_an_address_with_a_number_that_cannot_be_says_so(page, month, text_of) -> None:
    for typed in (1e99, -1.0):
        test = page("breakeven", month.url)
        test.number_input(key="x-rate").set_value(typed).run()
        assert not test.exception
        (said,) = [error.value for error in test.error]
        assert said.endswith("Counted: 0.4.")
        assert len(worths(text_of(test))) == 1
