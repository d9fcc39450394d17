"""Another gateway's spending is exact, and a day of it is replaced whole."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.spend_history import (
    HistoryCell,
    HistorySums,
    history_totals,
    pusd_of,
    replace_day,
    stored_days,
)

CELL = HistoryCell("acme", "search", "k", "ann", "chat", "openai")


@given(st.floats(min_value=0, max_value=1e9))
def test_dollars_are_as_their_text_says_to_half_a_pico(amount) -> None:
    exact = Fraction(repr(amount)) * 10**12
    assert abs(pusd_of(repr(amount)) - exact) <= Fraction(1, 2)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "x"])
def test_what_is_no_amount_is_refused(text) -> None:
    with pytest.raises((ValueError, ArithmeticError)):
        pusd_of(text)


def test_a_day_is_replaced_and_sums_are_wider_than_64_bits(engine) -> None:
    huge = HistorySums(2, 1, 3, 4, 10**25)
    with engine.begin() as connection:
        replace_day(connection, "a", "2026-11-01", {CELL: huge, CELL._replace(team="ads"): huge})
        replace_day(connection, "a", "2026-11-02", {CELL: huge})
        replace_day(connection, "b", "2026-11-02", {CELL: HistorySums(1)})
        replace_day(connection, "a", "2026-11-01", {CELL: huge})
        assert stored_days(connection, "a") == {"2026-11-01": 2, "2026-11-02": 2}
        first, second = history_totals(connection)
        assert (first.source, first.first_day, first.last_day) == ("a", "2026-11-01", "2026-11-02")
        assert first.sums == HistorySums(4, 2, 6, 8, 2 * 10**25)
        assert second.sums == HistorySums(1)
        (one,) = history_totals(connection, ("2026-11-01", "2026-11-01"))
        assert one.sums == huge
        assert list(history_totals(connection, team="nobody")) == []
