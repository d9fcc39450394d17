"""Two clocks, never mixed: monotonic seconds for durations, wall microseconds for stamps."""

import time

from gateway.clock import Clock


def test_the_clocks_are_the_hosts() -> None:
    clock = Clock()
    before_s, before_us = time.monotonic(), time.time_ns() // 1000
    assert before_s <= clock.now_s() <= time.monotonic()
    assert before_us <= clock.wall_us() <= time.time_ns() // 1000
    assert clock.boot() == Clock().boot()


def test_others_can_be_passed_in() -> None:
    clock = Clock(now_s=lambda: 1.5, wall_us=lambda: 7, boot=lambda: "b")
    assert (clock.now_s(), clock.wall_us(), clock.boot()) == (1.5, 7, "b")
