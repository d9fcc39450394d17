"""The date on which growth crosses break-even, its interval, and the refusals to name one."""

import random
from datetime import date, timedelta

import pytest

from ledger.economics.trend import HORIZON_DAYS, TrendResult, crossing

LAST = date(2026, 6, 30)


def test_under_two_weeks_there_is_no_date() -> None:
    answer = crossing(range(13), last_day=LAST, needed_per_day=20)
    assert answer.outlook is TrendResult.TOO_LITTLE_DATA
    assert answer.day is None


def test_a_clean_line_crosses_on_its_day() -> None:
    answer = crossing([10.0 * day for day in range(14)], last_day=LAST, needed_per_day=200)
    assert answer.outlook is TrendResult.CROSSES
    assert (answer.earliest, answer.day, answer.latest) == (LAST + timedelta(days=7),) * 3


@pytest.mark.parametrize(
    ("tokens", "needed", "outlook"),
    [
        ([100.0] * 20, 100, TrendResult.ABOVE),
        ([100.0] * 20, 101, TrendResult.NOT_IN_SIGHT),
        ([100.0 - day for day in range(20)], 101, TrendResult.NOT_IN_SIGHT),
        ([float(day) for day in range(20)], 21 + HORIZON_DAYS, TrendResult.NOT_IN_SIGHT),
    ],
)
def test_no_date_without_a_crossing_ahead(
    tokens: list, needed: float, outlook: TrendResult
) -> None:
    answer = crossing(tokens, last_day=LAST, needed_per_day=needed)
    assert answer.outlook is outlook
    assert (answer.day, answer.earliest, answer.latest) == (None, None, None)


def test_noise_opens_the_interval_and_doubt_about_growth_leaves_it_open() -> None:
    noise = [1, -1] * 10
    growing = [50 + 5 * day + 10 * noise[day] for day in range(20)]
    answer = crossing(growing, last_day=LAST, needed_per_day=200)
    assert answer.earliest < answer.day < answer.latest
    doubtful = [50 + 0.2 * day + 30 * noise[day] for day in range(20)]
    answer = crossing(doubtful, last_day=LAST, needed_per_day=60)
    assert answer.latest is None


def test_the_interval_covers_the_true_date_about_as_often_as_it_says() -> None:
    rng = random.Random(20)
    covered = 0
    for _ in range(400):
        tokens = [100 + 3 * day + rng.gauss(0, 15) for day in range(28)]
        answer = crossing(tokens, last_day=LAST, needed_per_day=250, confidence=0.8)
        truth = LAST + timedelta(days=50 - 27)
        late_enough = answer.latest is None or truth <= answer.latest
        covered += answer.earliest <= truth and late_enough
    assert 0.72 <= covered / 400 <= 0.90
