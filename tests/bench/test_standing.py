"""The routing bench's own rules: what counts as 0, what fails a run, what a cell is fed with."""

import json
import random
import statistics
from itertools import pairwise

import pytest
from bench_routing import Book, Task, tasks
from cells import BARS, QUICK, ROBUST, cells
from standing import plot, scores, table
from traces import SOURCES, Load, Traces, drawn
from trial import problem, run

CELLS = {cell.name: cell for cell in cells(400)}
CELL = CELLS["conv_mini_2x"]


def figures(avoided: float, own_kept: float = 1.0) -> dict:
    return {
        "requests": 10, "seconds": 1.0, "bill_usd": 2.0, "avoided_usd": avoided,
        "gross_usd": avoided, "own_share": 0.5, "own_kept": own_kept, "own_kept_ttft": own_kept,
        "own_kept_tpot": own_kept, "all_kept": own_kept, "preempted": 0,
    }  # fmt: skip


def found(**runs: dict) -> dict:
    return {CELL.name: {"0": {"bound": {"dollars": 1.0}, **runs}}}


def test_broken_promises_score_nothing() -> None:
    seeds = found(ours=figures(0.9, 0.9899))[CELL.name]
    assert scores(seeds, "ours") == [0.0]
    assert scores(seeds, "ours", valid=False) == [0.9]
    assert scores(found(ours=figures(0.9, 0.99))[CELL.name], "ours") == [0.9]


@pytest.mark.parametrize(
    ("runs", "good", "word"),
    [
        ({"ours": figures(0.9), "greedy": figures(0.9)}, True, "every cell found"),
        ({"ours": figures(0.8), "greedy": figures(0.8)}, False, "FELL SHORT"),
        ({"ours": figures(0.9, 0.5), "greedy": figures(0.9)}, False, "FELL SHORT"),
        ({"ours": figures(0.9), "greedy": figures(0.95)}, False, "FELL SHORT"),
        ({"ours": figures(1.01), "greedy": figures(1.0)}, False, "ABOVE THE BOUND"),
        ({"ours": figures(0.9), "greedy": figures(0.9), "run<8": figures(1.1)}, False, "ABOVE"),
        ({"ours": figures(0.9), "run<8": figures(0.8)}, True, "every cell found"),
        ({"ours": figures(0.9), "run<8": figures(0.85)}, False, "FELL SHORT"),  # 1.1 times must
        ({"ours": figures(0.9), "run<8": figures(0.85, 0.98)}, True, "every cell found"),
    ],
)
def test_what_fails_a_run(runs, good, word, tmp_path) -> None:
    text, reached = table([CELL], found(**runs))
    assert (reached, word in text) == (good, True)
    plot(tmp_path / "plot.svg", [CELL], found(**runs))
    assert CELL.name in (tmp_path / "plot.svg").read_text()


def test_cells_have_names_of_their_own_bars_and_the_quick_ones_exist() -> None:
    assert len(CELLS) == len(cells(400)) >= 48
    assert {*QUICK, *ROBUST} <= CELLS.keys()
    assert all(cell.times in BARS[cell.kind] for cell in CELLS.values())


def test_a_cell_gets_its_rate_and_a_seed_repeats() -> None:
    traces = Traces()
    load = Load((("conv", (("a", 0.3), ("b", 0.7))),), 20.0, 100.0, 10**6)
    arrivals = traces.arrivals(load, 1)
    assert arrivals == traces.arrivals(load, 1) != traces.arrivals(load, 2)
    assert 10.0 < len(arrivals) / 100.0 < 40.0
    share = sum(arrival.model == "a" for arrival in arrivals) / len(arrivals)
    assert share == pytest.approx(0.3, abs=0.05)


def test_stand_ins_have_the_statistics_and_are_told(tmp_path) -> None:
    traces = Traces(tmp_path)
    traces.rows("conv")
    assert traces.stand_in
    for name, burstiness in (("conv", (0.8, 2.5)), ("code", (4.0, 20.0))):
        rows = drawn(SOURCES[name], random.Random(1), 5000)
        gaps = [after[0] - before[0] for before, after in pairwise(rows)]
        spread = statistics.pstdev(gaps) / statistics.mean(gaps)
        assert burstiness[0] < spread < burstiness[1]
        middle = statistics.median(row[1] for row in rows)
        assert middle == pytest.approx(SOURCES[name].prompt[0], rel=0.1)


def test_everything_is_asked_for_once_what_matters_most_first() -> None:
    asked = list(tasks(list(CELLS.values()), 3, quick=False))
    assert len(asked) == len({(request.cell.name, request.seed, request.what) for request in asked})
    assert [request.what for request in asked[:3]] == ["bound", "ours", "greedy"]
    assert {request.seed for request in asked[: 3 * len(CELLS)]} == {0}
    assert {task.seed for task in tasks([CELL], 1, quick=True)} == {0}


def test_what_was_found_is_kept_and_other_circumstances_begin_anew(tmp_path) -> None:
    Book(tmp_path, {"most": 1}).add(Task(CELL, 0, "ours"), figures(0.5))
    assert Book(tmp_path, {"most": 1}).of(CELL)["0"]["ours"]["avoided_usd"] == 0.5
    assert Book(tmp_path, {"most": 2}).of(CELL) == {}


def test_a_run_is_scored_and_its_bound_is_asked_in_the_same_dollars() -> None:
    arrivals = Traces().arrivals(CELL.load, 0)
    ours = run(CELL, arrivals, "ours", 0)
    own = run(CELL, arrivals, "all-own", 0)
    assert ours.requests == len(arrivals) == 400
    assert own.own_share == 1.0
    assert 0.0 < ours.avoided_usd <= ours.gross_usd <= ours.bill_usd
    given = json.loads(json.dumps(problem(CELL, arrivals, finer=2)))
    assert sum(request[3] for request in given["requests"]) == pytest.approx(ours.bill_usd)
    assert (given["window_s"], given["fine_s"]) == (2.0, 0.125)
