"""What the router's decisions are worth on recorded traffic, beside a clairvoyant bound.

Each cell runs in virtual time through the product's own decision and through what people run
today, on the same arrivals and the same API latencies; the bound is a linear program, solved in an
environment of its own. Every figure is kept in `build/routing` as soon as it is found, so a stopped
run goes on where it was. Prints a table; leaves JSON and a plot in `build`.

    make bench-routing                       # all cells, three seeds: hours of one core
    make bench-routing ARGS=--quick          # six cells, one seed: minutes
    make bench-routing ARGS="--cells kv60"   # what has this in its name
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cells import (  # noqa: E402  (after the checkout's packages)
    ATTAINMENT,
    MOST,
    QUICK,
    ROBUST,
    SECONDS,
    Cell,
    cells,
)
from peers import install  # noqa: E402  (as above)
from standing import plot, table  # noqa: E402  (as above)
from traces import Traces  # noqa: E402  (as above)
from trial import (  # noqa: E402  (as above)
    ERRORS,
    MAIN,
    OTHERS,
    SWEPT,
    best_limits,
    is_servable,
    problem,
    run,
)

from gateway.whatif.traffic import Arrival  # noqa: E402  (as above)

BUILD = ROOT / "build"
BOUND, HALVED = "bound", "bound, half windows"
QUICK_MOST = 14_000  # fewer tell of the start from empty engines more than of routing


class Task(NamedTuple):
    cell: Cell
    seed: int
    what: str  # a policy, or a bound


def tasks(chosen: list[Cell], seeds: int, *, quick: bool) -> Iterator[Task]:
    """What matters most first: each cell's score, errors, what others do, then further seeds."""
    main, rest = (BOUND, *MAIN[:2]), (*MAIN[2:], *OTHERS)
    some = [cell for cell in chosen if cell.name in QUICK]
    yield from (Task(cell, 0, what) for cell in chosen for what in main)
    if not quick:
        tried = [cell for cell in chosen if cell.name in ROBUST]
        yield from (Task(cell, 0, what) for cell in tried for what in ERRORS)
    yield from (Task(cell, 0, what) for cell in some for what in rest)
    for seed in range(1, seeds):
        yield from (Task(cell, seed, what) for cell in chosen for what in main)
    if not quick:
        others = [cell for cell in chosen if cell not in some]
        yield from (Task(cell, 0, HALVED) for cell in (*some, *others))
        yield from (Task(cell, 0, what) for cell in others for what in rest)


class Book:
    """What was found so far, a file a cell."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._about = folder, about
        self._found: dict[str, dict[str, Any]] = {}

    def of(self, cell: Cell) -> dict[str, Any]:
        """By seed, then by what; empty when it was found under other circumstances."""
        if cell.name not in self._found:
            path = self._folder / f"{cell.name}.json"
            kept = json.loads(path.read_text()) if path.exists() else {}
            known = kept.get("about") == self._about
            self._found[cell.name] = kept["seeds"] if known else {}
        return self._found[cell.name]

    def add(self, task: Task, figures: dict[str, Any]) -> None:
        found = self.of(task.cell)
        found.setdefault(str(task.seed), {})[task.what] = figures
        text = json.dumps({"about": self._about, "seeds": found}, indent=1)
        (self._folder / f"{task.cell.name}.json").write_text(text + "\n")


def figures_of(task: Task, traces: Traces, python: Path) -> dict[str, Any]:
    arrivals = traces.arrivals(task.cell.load, task.seed)
    if task.what in SWEPT:
        return best_limits(task.cell, arrivals, SWEPT[task.what], task.seed)
    if task.what not in (BOUND, HALVED):
        return asdict(run(task.cell, arrivals, task.what, task.seed))
    found = bound_of(task.cell, arrivals, python, finer=2 if task.what == HALVED else 1)
    del found["shares"]  # as long as the traffic, and of use to a plan alone
    return found


def bound_of(
    cell: Cell, arrivals: list[Arrival], python: Path, *, finer: int = 1
) -> dict[str, Any]:
    given = json.dumps(problem(cell, arrivals, finer=finer))
    script = str(Path(__file__).with_name("bound.py"))
    answer = subprocess.run(
        [str(python), script], input=given, stdout=subprocess.PIPE, text=True, check=True
    )
    return dict(json.loads(answer.stdout))


def capacity_rps(cell: Cell, traces: Traces) -> float:
    """The rate of Poisson arrivals at which all-own keeps its promises, feasible requests only."""
    low, high = 0.1, 400.0
    while high / low > 1.02:
        rate = (low * high) ** 0.5
        load = cell.load.__class__(cell.load.traces, rate, 1e9, 3000)
        arrivals = [item for item in traces.poisson(load, 0) if is_servable(cell, item)]
        kept = run(cell, arrivals, "all-own", 0).own_kept
        low, high = (rate, high) if kept >= ATTAINMENT else (low, rate)
    return low


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="six cells, one seed, short")
    parser.add_argument("--cells", default="", help="only those with this in their name")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--most", type=int, default=MOST, help="requests of a cell")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin nothing after these")
    parser.add_argument("--fresh", action="store_true", help="forget what was found before")
    parser.add_argument("--capacity", action="store_true", help="only find what 1x is")
    given = parser.parse_args()
    most, seeds = (QUICK_MOST, 1) if given.quick else (given.most, given.seeds)
    chosen = [cell for cell in cells(most) if given.cells in cell.name]
    if given.quick:
        chosen = [cell for cell in chosen if cell.name in QUICK]
    traces = Traces()
    if given.capacity:
        for cell in chosen:
            print(f"{cell.name}: {capacity_rps(cell, traces):.2f} requests/s", flush=True)
        return 0
    python = install("highs", BUILD / "peers")
    for cell in chosen:
        for name, _ in cell.load.traces:
            traces.rows(name)
    about = {"most": most, "seconds": SECONDS, "stand_in": traces.stand_in}
    if traces.stand_in:
        print("NO RECORDED TRACES: drawn stand-ins, whose figures compare with nothing")
    folder = BUILD / ("routing-quick" if given.quick else "routing")
    if given.fresh:
        for path in folder.glob("*.json"):
            path.unlink()
    book = Book(folder, about)
    _work(list(tasks(chosen, seeds, quick=given.quick)), book, traces, python, given.minutes)
    found = {cell.name: book.of(cell) for cell in chosen if book.of(cell)}
    text, good = table([cell for cell in chosen if cell.name in found], found)
    print(text)
    figures = {"about": about, "cells": found, "table": text.splitlines()}
    (BUILD / "bench-routing.json").write_text(json.dumps(figures, indent=1) + "\n")
    plot(BUILD / "bench-routing.svg", chosen, found)
    return 0 if good else 1


def _work(todo: list[Task], book: Book, traces: Traces, python: Path, minutes: float) -> None:
    began = time.monotonic()
    for number, task in enumerate(todo, start=1):
        if task.what in book.of(task.cell).get(str(task.seed), {}):
            continue
        spent_s = time.monotonic() - began
        if spent_s > 60.0 * minutes:
            print(f"stopped after {minutes:g} minutes, {len(todo) - number + 1} figures not found")
            return
        book.add(task, figures_of(task, traces, python))
        took_s = time.monotonic() - began - spent_s
        print(
            f"{number}/{len(todo)} {task.cell.name} seed {task.seed} {task.what}: {took_s:.1f} s",
            file=sys.stderr, flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
