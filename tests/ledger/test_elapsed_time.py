"""A clock that is set ahead makes nothing old; one that is set back is followed."""

from ledger.elapsed_time import ElapsedTime

DAY_US = 86_400_000_000


def test_the_time_is_never_ahead_of_what_has_passed() -> None:
    now = {"wall_us": 1000 * DAY_US, "ns": 5}
    time = ElapsedTime(lambda: now["wall_us"], lambda: now["ns"])
    assert time.at_most_us() == 1000 * DAY_US
    now["ns"] += 7000
    now["wall_us"] += 100 * DAY_US
    assert time.at_most_us() == 1000 * DAY_US + 7
    now["wall_us"] -= 101 * DAY_US
    assert time.at_most_us() == 999 * DAY_US
