"""Our gateway with everything switched on beside the gateways that people use today.

One mock upstream and one load generator (C, on a core of their own), every gateway on one core,
interleaved round by round, medians and ratios. Prints the table with its bars, writes
`build/bench-gateway.json` and `.svg`. Start it with `make bench-gateway` or, in under two
minutes once the peers are installed, `make bench-gateway ARGS=--quick`.
"""

import argparse
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import ours
import peers
import report
import scenes
import wire
from measure import pin
from ours import ROOT
from peers import Target
from report import TWO
from scenes import Figures, Stage

BUILD = ROOT / "build"
FOLDER = BUILD / "bench"
ENGINES = 4
FULL_WARM = scenes.FULL.growth_warm


class Bench:
    """The running targets and what was measured so far."""

    def __init__(self, stage: Stage, targets: dict[str, Target], only: set[str]) -> None:
        self._stage = stage
        self._targets = targets
        self._only = only
        self.samples: report.Samples = {}

    def scene(
        self, name: str, run: Callable[..., Figures], *rest: str, names: list[str] | None = None
    ) -> None:
        """One scene on every target, one after the other."""
        if self._only and name.split(maxsplit=1)[0] not in self._only:
            return
        usual = [target for target in self._targets if target != TWO]
        for target in usual if names is None else names:
            running = self._targets.get(target)  # none: the upstream itself
            self._alone(target)
            began = time.monotonic()
            figures = run(self._stage, running, *rest)
            kept = self.samples.setdefault(name, {}).setdefault(target, {})
            for figure, value in figures.items():
                kept.setdefault(figure, []).append(value)
            told = ", ".join(f"{figure} {value:.3g}" for figure, value in figures.items())
            print(f"  {name:14} {target:14} {time.monotonic() - began:5.1f} s  {told}", flush=True)

    def _alone(self, target: str) -> None:
        """The others share its core: they are stopped. Ours goes on: it must not look dead."""
        for name, other in self._targets.items():
            if name in {target, report.OURS}:
                other.resume()
            else:
                other.pause()

    def round(self, *, full: bool) -> None:
        usual = [target for target in self._targets if target != TWO]
        # LiteLLM's proxy does not end a thousand streams within a minute.
        many = [target for target in usual if target != report.LITELLM]
        paced = [report.DIRECT, *(usual if full else many)]
        self.scene("closed 2 KB", scenes.closed, "2 KB")
        for size in ("16 KB", "128 KB"):
            names = None if full else [report.OURS]
            self.scene(f"closed {size}", scenes.closed, size, names=names)
        self.scene("paced", scenes.paced, names=paced)
        self.scene("first", scenes.first, names=paced)
        self.scene("dense", scenes.dense, names=many)
        self.scene("sparse", scenes.sparse, names=many)
        self.scene("at once", scenes.at_once, names=[report.DIRECT, *many])
        self.scene("hung up", scenes.hung_up, names=many if full else [report.OURS])
        self.scene("stalled", scenes.stalled, names=many)
        for size in ("16 KB", "128 KB"):
            self.scene(f"blocked {size}", scenes.blocked, size, names=[report.OURS])


def main() -> int:
    options = _options()
    wire.build(FOLDER)
    lengths = scenes.QUICK if options.quick else scenes.FULL
    if options.requests:
        warm = min(FULL_WARM, options.requests // 6)
        lengths = replace(lengths, growth_requests=options.requests, growth_warm=warm)
    rounds = options.rounds or (1 if options.quick else 3)
    cores = sorted(os.sched_getaffinity(0))
    gateway, others = {cores[0]}, {cores[-1]}
    pythons = {name: peers.install(name, FOLDER) for name in options.peers}
    state = FOLDER / "state"
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    with _upstream(others) as upstream:
        stage = Stage(wire.Load(FOLDER, others), upstream, state, lengths)
        with _targets(upstream, state, pythons, gateway) as targets:
            bench = Bench(stage, targets, set(options.only))
            for number in range(rounds):
                print(f"round {number + 1} of {rounds}", flush=True)
                bench.round(full=not options.quick)
            bench.scene("growth", scenes.growth, names=[report.OURS])
            for _ in range(rounds):
                bench.scene("two workers", scenes.two_workers, names=[TWO])
            left = targets[report.OURS].candidates_left()
    return _conclude(bench, rounds, left, quick=options.quick)


def _conclude(bench: Bench, rounds: int, left: int, *, quick: bool) -> int:
    made = report.lines(bench.samples)
    about = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{os.cpu_count()} cores {platform.machine()}",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "rounds": rounds,
        "quick": quick,
        "candidates_feasible": left,
    }
    BUILD.mkdir(exist_ok=True)
    report.write(BUILD / "bench-gateway.json", bench.samples, made, about)
    report.plot(BUILD / "bench-gateway.svg", bench.samples)
    print(
        f"\n{about['machine']}, {rounds} round(s), {left} of {ours.CANDIDATES} candidates feasible"
    )
    print(report.table(bench.samples, made))
    print("\nwritten: build/bench-gateway.json, build/bench-gateway.svg")
    if left != ours.CANDIDATES:
        print(f"the run does not count: only {left} candidates reached the objective")
        return 1
    return 0 if all(one.met for one in made) else 1


@contextmanager
def _upstream(cores: set[int]) -> Iterator[wire.Upstream]:
    upstream = wire.Upstream(FOLDER, wire.free_ports(ENGINES), cores)
    try:
        yield upstream
    finally:
        upstream.stop()


@contextmanager
def _targets(
    upstream: wire.Upstream, state: Path, pythons: dict[str, Path], cores: set[int]
) -> Iterator[dict[str, Target]]:
    """All gateways, started together, ready, and each confined to the same core.

    Our ledger writer and telemetry run where there is room; their CPU time counts all the same.
    """
    running: dict[str, Target] = {}
    every = set(os.sched_getaffinity(0))
    ports = upstream.ports
    try:
        first = ours.start(state, ports, workers=1, name=report.OURS, cores=every)
        running[report.OURS] = first
        for name, python in pythons.items():
            running[name] = peers.start(name, python, ports, state, every)
        second = ours.start(state, ports, workers=2, name=TWO, cores=every)
        running[TWO] = second
        for target in running.values():
            peers.wait_ready(target)
        ours.wait_fitted(first)
        ours.wait_fitted(second)
        for name, target in running.items():
            if name != TWO:
                for pid in target.workers:
                    pin(pid, cores)
        yield running
    finally:
        for target in running.values():
            target.stop()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--rounds", type=int, help="how often everything is repeated (3)")
    parser.add_argument("--requests", type=int, help="requests over which memory may grow")
    parser.add_argument("--peers", nargs="*", default=list(peers.NAMES), choices=peers.NAMES)
    parser.add_argument("--only", nargs="*", default=[], help="scenes by their first word")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
