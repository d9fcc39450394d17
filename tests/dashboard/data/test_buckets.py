"""Widths of bars: a span that begins before the first request counts from that request on."""

import pytest

from dashboard.data.buckets import bucket_us
from ledger.queries.reads import DAY_US, HOUR_US, MINUTE_US, Scope

NOW_US = 400 * DAY_US


@pytest.mark.parametrize(
    ("length_us", "width_us"),
    [
        (2 * HOUR_US, MINUTE_US),
        (2 * HOUR_US + 1, 10 * MINUTE_US),
        (3 * DAY_US, HOUR_US),
        (8 * DAY_US, 6 * HOUR_US),
        (8 * DAY_US + 1, DAY_US),
    ],
)
def test_bars_fit_the_span_and_what_is_in_it(length_us: int, width_us: int) -> None:
    assert bucket_us(Scope(NOW_US - length_us, NOW_US), None) == width_us
    assert bucket_us(Scope(0, NOW_US), NOW_US - length_us) == width_us
