"""Waits between looks grow by half each time, up to the most."""

from gateway.batches.poll_intervals import PollIntervals


def test_waits_grow_to_the_most() -> None:
    waits = PollIntervals(first=4.0, most=10.0)
    assert [waits.delay_us(tries) for tries in (0, 1, 2, 3, 10_000)] == [
        4_000_000, 6_000_000, 9_000_000, 10_000_000, 10_000_000,
    ]  # fmt: skip
