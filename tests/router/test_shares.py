"""Shares are exact in the long run, stable for a key, and independent of each other."""

import subprocess
import sys

import pytest

from router.reasons import Reason
from router.shares import NOBODY, Canary, SplitPart, TrafficSplit, position_of

A, B, C = (frozenset({name}) for name in ("a", "b", "c"))
KEYS = [f"req-{number:06}" for number in range(40_000)]


def sigmas(found: int, share: float) -> float:
    expected = share * len(KEYS)
    return abs(found - expected) / (expected * (1.0 - share)) ** 0.5


def test_places_are_even_and_the_same_in_every_process():
    tenths = [0] * 10
    for key in KEYS:
        tenths[int(10 * position_of("x", key))] += 1
    assert max(sigmas(tenth, 0.1) for tenth in tenths) < 4
    say = "from router.shares import position_of; print(position_of('x', 'req-1'))"
    told = subprocess.run(
        [sys.executable, "-c", say], capture_output=True, check=True, env={"PYTHONHASHSEED": "7"},
        cwd=__file__.rpartition("/tests/")[0],
    )  # fmt: skip
    assert float(told.stdout) == position_of("x", "req-1")
    assert 0.0 <= position_of("\ud800", "") < 1.0


@pytest.mark.parametrize("percent", [0.0, 0.5, 5.0, 50.0, 100.0])
def test_a_canary_gets_its_share_and_nothing_of_the_others(percent):
    split = TrafficSplit("rule", Canary(A, percent / 100.0))
    chosen = [split.of(key) for key in KEYS]
    mine = [preferred for preferred, _ in chosen if preferred is not None]
    if percent in (0.0, 100.0):
        assert len(mine) == percent / 100.0 * len(KEYS)
    else:
        assert sigmas(len(mine), percent / 100.0) < 4
    for preferred, kept in chosen:
        assert preferred is None or (preferred == (A, Reason.CANARY) and not kept)
        assert (preferred is None) is ("a" in kept)
        assert not kept or kept["a"][0] is Reason.CANARY


def test_a_canary_that_grows_keeps_whom_it_had():
    few, many = (TrafficSplit("rule", Canary(A, share)) for share in (0.05, 0.10))
    assert all(many.of(key)[0] for key in KEYS if few.of(key)[0])


def test_weights_are_kept_and_do_not_hang_on_the_canary():
    parts = (SplitPart(A, 3.0), SplitPart(B, 1.0))
    split = TrafficSplit("rule", Canary(C, 0.2), parts)
    found = {A: 0, B: 0, C: 0}
    for key in KEYS:
        preferred, _ = split.of(key)
        assert preferred is not None
        found[preferred.names] += 1
    assert sigmas(found[C], 0.2) < 4
    assert sigmas(found[A], 0.6) < 4
    assert sigmas(found[B], 0.2) < 4
    assert TrafficSplit("rule", None, parts).of("k") == TrafficSplit("rule", None, parts).of("k")
    assert TrafficSplit("rule").of("k") == (None, NOBODY)


def test_rules_share_out_independently():
    item, other = (TrafficSplit(name, Canary(A, 0.5)) for name in ("one", "other"))
    both = sum(bool(item.of(key)[0]) and bool(other.of(key)[0]) for key in KEYS)
    assert sigmas(both, 0.25) < 4
