"""Rivals' limits in hindsight: enough of them, around the best that keeps its promises."""

import pytest
from cells import ATTAINMENT, cells
from standing import table
from thresholds import POINTS, SIGNALS, Point, Signal, sweep
from traces import Traces
from trial import SWEPT, best_limits, run

CELL = next(cell for cell in cells(300) if cell.name == "conv_mini_2x")


@pytest.mark.parametrize("whole", [False, True])
def test_limits_gather_around_the_best_that_keeps_its_promises(whole):
    """Dollars grow with the limit, promises break beyond 37."""
    played = []

    def play(limit):
        played.append(limit)
        return Point(limit, limit, 1.0 if limit <= 37 else 0.9, refused=1)

    found = sweep(Signal(lambda *_: 0.0, 1, 500, whole), play, 0.99)
    assert len(found.points) == len(set(played)) >= POINTS
    assert found.best.limit == pytest.approx(37, rel=0.06)
    assert found.best.limit <= 37


def test_beyond_where_nobody_is_refused_nothing_is_played_again():
    played = []

    def play(limit):
        played.append(limit)
        return Point(limit, min(limit, 10.0), 1.0, refused=int(limit < 10))

    found = sweep(Signal(lambda *_: 0.0, 1, 500), play, 0.99)
    assert len(found.points) >= POINTS > len(played)
    assert {point.avoided_usd for point in found.points if point.limit > 10} == {10.0}


def test_no_limit_may_keep_any_promise():
    found = sweep(Signal(lambda *_: 0.0, 1, 9), lambda limit: Point(limit, 1.0, 0.5, 1), 0.99)
    assert found.best is None
    assert len(found.points) >= POINTS


@pytest.mark.parametrize("name", SIGNALS)
def test_every_signal_divides_traffic_by_its_limit(name):
    """The lowest limits send more to the API than the highest, and none earns above its bill."""
    arrivals = Traces().arrivals(CELL.load, 0)
    found = best_limits(CELL, arrivals, name, 0)
    refused = [point["refused"] for point in found["limits"]]
    assert len(refused) >= POINTS
    assert refused[0] > refused[-1] >= 0
    bill = run(CELL, arrivals, "all-own", 0).bill_usd
    assert all(0.0 <= point["avoided_usd"] <= bill for point in found["limits"])


def test_the_table_says_by_how_much_each_signal_is_beaten():
    ours = {"requests": 10, "bill_usd": 2.0, "avoided_usd": 0.9, "gross_usd": 1.0,
            "own_share": 0.5, "own_kept": 1.0, "all_kept": 1.0}  # fmt: skip
    best, broken = Point(7, 0.8, ATTAINMENT, 3)._asdict(), Point(9, 0.95, 0.9, 1)._asdict()
    what = next(what for what, name in SWEPT.items() if name == "running")
    runs = {"bound": {"dollars": 1.0}, "ours": ours, what: {"limits": [best, broken], "best": best}}
    text, _ = table([CELL], {CELL.name: {"0": runs}})
    row = next(line for line in text.splitlines() if line.startswith("running"))
    assert row.split()[1:] == [CELL.name, "7", "0.800", "1.125"]
