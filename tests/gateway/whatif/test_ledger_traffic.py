"""Spans of time as people write them. What lies in them: `tests/ledger/queries/test_traffic.py`."""

import pytest

from gateway.whatif.ledger_traffic import SpanError, span_of
from ledger.spans import DAY_US, HOUR_US

NOW_US = 1_790_000_000_000_000


def test_spans() -> None:
    week = span_of("last-7-days", NOW_US)
    assert (week.start_us, week.end_us) == (NOW_US - 7 * DAY_US, NOW_US)
    assert span_of("last-1-hour", NOW_US).start_us == NOW_US - HOUR_US
    days = span_of("2026-11-01..2026-11-08", NOW_US)
    assert days.end_us - days.start_us == 7 * DAY_US


@pytest.mark.parametrize(
    "text", ["", "yesterday", "last-0-days", "2026-11-08..2026-11-01", "2026-13-01..2026-14-01"]
)
def test_what_is_no_span_is_told_with_what_is(text) -> None:
    with pytest.raises(SpanError, match="last-7-days, last-24-hours"):
        span_of(text, NOW_US)
