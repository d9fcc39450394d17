import pytest

from gateway.fleet.kv_transfers import LEAST, MOST, TransferTimes


def test_what_is_stated_holds_until_moves_are_seen() -> None:
    times = TransferTimes(0.02, 1e-5)
    assert times.expected == (0.02, 1e-5)
    for _ in range(50):
        times.observe(4000, 0.12)  # twice what is stated
    assert times.expected == (pytest.approx(0.04, rel=0.02), pytest.approx(2e-5, rel=0.02))


def test_one_slow_move_is_no_reason_to_never_move_again() -> None:
    times = TransferTimes(0.02, 1e-5)
    for _ in range(20):
        times.observe(4000, 0.06)
    times.observe(4000, 3600.0)
    assert times.factor < MOST * 0.2
    for _ in range(200):
        times.observe(4000, 1e-9)
    assert times.factor >= LEAST


@pytest.mark.parametrize("took_s", [0.0, -1.0, float("nan")])
def test_what_is_no_time_teaches_nothing(took_s) -> None:
    times = TransferTimes(0.02, 1e-5)
    times.observe(100, took_s)
    assert (times.factor, times.observations) == (1.0, 0)
    unstated = TransferTimes(0.0, 0.0)
    unstated.observe(100, 1.0)
    assert unstated.observations == 0
