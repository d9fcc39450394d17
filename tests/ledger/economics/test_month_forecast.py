"""What is over counts exactly; what is to come follows weekday and trend, and says how surely."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.economics.month_forecast import LEAST_DAYS, MonthForecast, forecast_month

DOLLAR = 10**12
amounts = st.lists(st.integers(0, 10**17), min_size=LEAST_DAYS, max_size=70)


def forecast(past: list[int], days_left: int, days_over: int | None = None) -> MonthForecast:
    found = forecast_month(
        past,
        last_weekday=(len(past) - 1) % 7,  # the first day was a Monday
        days_over=len(past) if days_over is None else days_over,
        days_left=days_left,
    )
    assert found is not None
    return found


@given(past=amounts, days_left=st.integers(0, 31), data=st.data())
def test_the_interval_holds_the_expectation_and_never_less_than_is_spent(
    past, days_left: int, data
) -> None:
    over = data.draw(st.integers(0, len(past)))
    found = forecast(past, days_left, over)
    assert found.spent_pusd == sum(past[len(past) - over :])
    assert found.spent_pusd <= found.low_pusd <= found.expected_pusd <= found.high_pusd
    assert days_left or found.low_pusd == found.high_pusd == found.spent_pusd


@given(cost=st.integers(0, 10**15), days=st.integers(7, 40), left=st.integers(0, 24))
def test_days_that_cost_the_same_go_on_so_and_surely(cost: int, days: int, left: int) -> None:
    found = forecast([cost] * days, left)
    total = cost * (days + left)
    for pusd in (found.low_pusd, found.expected_pusd, found.high_pusd):
        assert abs(pusd - total) <= 1 + total // 10**9  # floats carry days to come


def test_weekends_are_cheap_to_come_as_they_were() -> None:
    past = [100 * DOLLAR, 20 * DOLLAR]
    month = [past[day % 7 >= 5] for day in range(28)]
    found = forecast(month[:21], 7)
    assert abs(found.expected_pusd - sum(month)) < sum(month) // 40
    naive = sum(month[:19]) * 28 // 19  # the pace, told before a weekend
    assert abs(naive - sum(month)) > sum(month) // 30


def test_growth_goes_on_and_what_stands_out_of_no_noise_does_not() -> None:
    growing = [(100 + 2 * day) * DOLLAR for day in range(30)]
    found = forecast(growing[:20], 10)
    flat = sum(growing[:20]) + 10 * growing[19]
    assert flat < found.expected_pusd <= sum(growing) * 101 // 100
    draw = random.Random(3)
    noisy = [round(100 * DOLLAR * draw.uniform(0.7, 1.3)) for _ in range(20)]
    shuffled = forecast(noisy, 10)
    mean = sum(noisy) // 20
    assert abs(shuffled.expected_pusd - 30 * mean) < 3 * mean


@given(past=st.lists(st.integers(10**12, 10**15), min_size=14, max_size=40))
def test_the_unit_changes_nothing(past) -> None:
    plain, scaled = forecast(past, 9), forecast([1000 * cost for cost in past], 9)
    for name in ("expected_pusd", "low_pusd", "high_pusd"):
        assert getattr(scaled, name) == pytest.approx(1000 * getattr(plain, name), rel=1e-9)


def test_under_a_week_nothing_is_told() -> None:
    assert forecast_month([DOLLAR] * 6, last_weekday=3, days_over=6, days_left=20) is None
    assert forecast([DOLLAR] * 7, 20, 0).spent_pusd == 0


def test_eight_of_ten_months_at_least_end_inside_and_most_are_near() -> None:
    """Noise of days and of whole weeks. The control: half the width holds fewer."""
    draw, inside, narrow, near = random.Random(7), 0, 0, 0
    for _ in range(400):
        weekend, growth = draw.uniform(0.4, 1.0), draw.uniform(-0.2, 0.3)
        weeks = [draw.lognormvariate(0, 0.08) for _ in range(5)]
        shape = [weekend if day % 7 >= 5 else 1 for day in range(30)]
        month = [
            round(100 * DOLLAR * level * weeks[day // 7] * (1 + growth * day / 30)
                  * draw.lognormvariate(0, 0.1))
            for day, level in enumerate(shape)
        ]  # fmt: skip
        total, found = sum(month), forecast(month[:12], 18)
        half = (found.high_pusd - found.low_pusd) // 4
        inside += found.low_pusd <= total <= found.high_pusd
        narrow += abs(found.expected_pusd - total) <= half
        near += abs(found.expected_pusd - total) <= total // 10
    assert 0.80 <= inside / 400 <= 0.96
    assert narrow / 400 < 0.75
    assert near / 400 > 0.80
