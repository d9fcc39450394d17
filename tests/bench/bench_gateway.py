"""Our gateway with everything switched on beside the gateways that people use today.

One mock upstream and one load generator (C, on a core of their own), every gateway on one core,
interleaved round by round, medians and ratios. Prints the table with its bars, writes
`build/bench-gateway.json` and `.svg`. Start it with `make bench-gateway` or, in under two
minutes once the peers are installed, `make bench-gateway ARGS=--quick`. Figures are kept after
every scene; `ARGS=--resume` goes on where a run ended, `ARGS="--only growth two"` chooses scenes;
`ARGS="--workers 4"` gives each gateway four cores, where there are enough.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import children
import ours
import peers
import report
import scenes
import wire
from measure import pin
from ours import ROOT, Ours
from peers import Target
from report import TWO
from samples import KeptSamples, Samples
from scenes import Figures, Stage

BUILD = ROOT / "build"
FOLDER = BUILD / "bench"
ENGINES = 4
FULL_WARM = scenes.FULL.growth_warm
WORKERS = "two workers"
SCENES = ("closed", "beside", "paced", "first", "synced", "dense", "sparse", "at", "hung",
          "stalled", "blocked", "growth", "two")  # fmt: skip
OURS_ONLY = {"blocked", "growth", "two"}  # no peer is started for them


class Bench:
    """The running targets and what was measured so far."""

    def __init__(self, stage: Stage, targets: dict[str, Target], kept: KeptSamples) -> None:
        self._stage = stage
        self._targets = targets
        self._kept = kept
        self.only: set[str] = set()  # first words of scenes; none: all
        self.number = 1  # of the round: what was measured so often is not measured again

    def scene(
        self, name: str, run: Callable[..., Figures], *rest: str, names: list[str] | None = None
    ) -> None:
        """One scene on every target, one after the other."""
        if self.only and first_word(name) not in self.only:
            return
        for target in self._targets if names is None else names:
            if self._kept.rounds(name, target) >= self.number:
                continue
            running = self._targets.get(target)  # none: the upstream itself
            self._alone(target)
            began = time.monotonic()
            figures = run(self._stage, running, *rest)
            figures["machine_load"] = os.getloadavg()[0]
            self._kept.add(name, target, figures)
            told = ", ".join(f"{figure} {value:.3g}" for figure, value in figures.items())
            print(f"  {name:14} {target:14} {time.monotonic() - began:5.1f} s  {told}", flush=True)

    def _alone(self, target: str) -> None:
        """The others share its core: they are stopped. Ours go on: they must not look dead."""
        for name, other in self._targets.items():
            if name == target or isinstance(other, Ours):
                other.resume()
            else:
                other.pause()

    def round(self, *, full: bool) -> None:
        # LiteLLM's proxy does not end a thousand streams within a minute.
        many = [target for target in self._targets if target != report.LITELLM]
        paced = [report.DIRECT, *(self._targets if full else many)]
        self.scene("closed 2 KB", scenes.closed, "2 KB")
        for size in ("16 KB", "128 KB", "400 KB"):
            names = None if full else [report.OURS]
            self.scene(f"closed {size}", scenes.closed, size, names=names)
        self.scene("beside", scenes.beside)
        self.scene("paced", scenes.paced, names=paced)
        self.scene("first", scenes.first, names=paced)
        self.scene("synced", scenes.synced, names=paced)
        self.scene("dense", scenes.dense, names=many)
        self.scene("sparse", scenes.sparse, names=[report.DIRECT, *many])
        self.scene("at once", scenes.at_once, names=[report.DIRECT, *many])
        self.scene("hung up", scenes.hung_up, names=many if full else [report.OURS])
        self.scene("stalled", scenes.stalled, names=many)
        for size in ("16 KB", "128 KB"):
            self.scene(f"blocked {size}", scenes.blocked, size, names=[report.OURS])


def first_word(scene: str) -> str:
    """What a scene is chosen by."""
    return scene.split(maxsplit=1)[0]


def main() -> int:
    options = _options()
    only, lengths = set(options.only), scenes.QUICK if options.quick else scenes.FULL
    if options.requests:
        warm = min(FULL_WARM, options.requests // 6)
        lengths = replace(lengths, growth_requests=options.requests, growth_warm=warm)
    rounds = options.rounds or (1 if options.quick else 3)
    origin = {"commit": _commit(), "lengths": asdict(lengths), "workers": options.workers}
    kept = KeptSamples(BUILD / "bench-gateway.samples.json", origin, resume=options.resume)
    with children.ended_by_signals():
        _measure(options, kept, only, lengths, rounds)
    return _conclude(kept.samples, rounds, quick=options.quick)


def _measure(
    options: argparse.Namespace,
    kept: KeptSamples,
    only: set[str],
    lengths: scenes.Lengths,
    rounds: int,
) -> None:
    """Every scene that was chosen and has no figures yet."""
    wire.build(FOLDER)
    cores = sorted(os.sched_getaffinity(0))
    gateway, others = set(cores[: options.workers]), {cores[-1]}
    engines = {cores[-2]} if len(cores) > options.workers + 2 else others
    state = FOLDER / "state"
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    alone = bool(only) and only <= OURS_ONLY
    pythons = {} if alone else {name: peers.install(name, FOLDER) for name in options.peers}
    with upstream_of(engines) as upstream:
        stage = Stage(wire.Load(FOLDER, others), upstream, state, lengths)
        with targets_of(upstream, state, pythons, gateway) as targets:
            bench = Bench(stage, targets, kept)
            bench.only = only
            for bench.number in range(1, rounds + 1):
                print(f"round {bench.number} of {rounds}", flush=True)
                bench.round(full=not options.quick)
            bench.number = 1
            bench.scene("growth", scenes.growth, names=[report.OURS])
            if not only or first_word(WORKERS) in only:
                with _two_workers(upstream, state) as second:
                    bench = Bench(stage, {**targets, TWO: second}, kept)
                    for bench.number in range(1, rounds + 1):
                        bench.scene(WORKERS, scenes.two_workers, names=[report.OURS, TWO])


def _conclude(samples: Samples, rounds: int, *, quick: bool) -> int:
    made, left = report.lines(samples), report.candidates(samples)
    about = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": f"{os.cpu_count()} cores {platform.machine()}",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "rounds": rounds,
        "quick": quick,
        "candidates_feasible": left,
        "machine_load": report.loads(samples),
    }
    report.write(BUILD / "bench-gateway.json", samples, made, about)
    report.plot(BUILD / "bench-gateway.svg", samples)
    print(
        f"\n{about['machine']}, {rounds} round(s), {left} of {ours.CANDIDATES} candidates feasible"
    )
    print("load of the machine while it was measured: least {}, median {}, most {}".format(
        *(f"{entry:.1f}" for entry in report.loads(samples))
    ))  # fmt: skip
    print(report.table(samples, made))
    print("\nwritten: build/bench-gateway.json, build/bench-gateway.svg")
    if left is not None and left != ours.CANDIDATES:
        print(f"the run does not count: only {left} candidates reached the objective")
        return 1
    return 0 if all(made_value.met for made_value in made) else 1


def _commit() -> str:
    """Of the checkout, with `+` where files were changed since."""
    words = ["git", "describe", "--always", "--dirty=+", "--abbrev=10"]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return told.stdout.strip() or "unknown"


@contextmanager
def upstream_of(cores: set[int]) -> Iterator[wire.Upstream]:
    upstream = wire.Upstream(FOLDER, wire.free_ports(ENGINES), cores)
    try:
        yield upstream
    finally:
        upstream.stop()


@contextmanager
def targets_of(
    upstream: wire.Upstream, state: Path, pythons: dict[str, Path], cores: set[int]
) -> Iterator[dict[str, Target]]:
    """All gateways, started together, ready, and each confined to the same cores.

    Our ledger writer and telemetry run where there is room; their CPU time counts all the same.
    """
    running: dict[str, Target] = {}
    every = set(os.sched_getaffinity(0))
    ports = upstream.ports
    try:
        first = ours.start(state, ports, workers=len(cores), name=report.OURS, cores=every)
        running[report.OURS] = first
        for name, python in pythons.items():
            running[name] = peers.start(name, python, ports, state, every)
        for target in running.values():
            peers.wait_ready(target)
        ours.wait_fitted(first)
        for target in running.values():
            for pid in target.workers:
                pin(pid, cores)
        yield running
    finally:
        for target in running.values():
            target.stop()


@contextmanager
def _two_workers(upstream: wire.Upstream, state: Path) -> Iterator[Ours]:
    """Started for its scene alone: its idle hours would cost the others' core."""
    every = set(os.sched_getaffinity(0))
    target = ours.start(state, upstream.ports, workers=2, name=TWO, cores=every)
    try:
        peers.wait_ready(target)
        ours.wait_fitted(target)
        yield target
    finally:
        target.stop()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--rounds", type=int, help="how often everything is repeated (3)")
    parser.add_argument(
        "--workers", type=int, default=1, help="workers of ours; each gateway has as many cores"
    )
    parser.add_argument("--requests", type=int, help="requests over which memory may grow")
    parser.add_argument("--peers", nargs="*", default=list(peers.NAMES), choices=peers.NAMES)
    parser.add_argument(
        "--only", nargs="*", default=[], choices=SCENES, help="scenes by their first word"
    )
    parser.add_argument(
        "--resume", action="store_true", help="measure only what an ended run of this lacks"
    )
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
