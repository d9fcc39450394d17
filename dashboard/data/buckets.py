"""Widths of a chart's bars, by the length of the displayed span."""

from ledger.queries.reads import DAY_US, HOUR_US, MINUTE_US, Scope


def bucket_us(scope: Scope, first_us: int | None) -> int:
    """Return the bar width: a minute for an hour of data, a day for a month of it."""
    start = scope.start_us if first_us is None else max(scope.start_us, first_us)
    length = scope.end_us - start
    for limit, bucket in (
        (2 * HOUR_US, MINUTE_US),
        (12 * HOUR_US, 10 * MINUTE_US),
        (3 * DAY_US, HOUR_US),
        (8 * DAY_US, 6 * HOUR_US),
    ):
        if length <= limit:
            return bucket
    return DAY_US
