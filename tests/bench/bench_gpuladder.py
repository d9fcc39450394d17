"""Probe, ladder and tuning of one shape on one GPU, within the time that is given; goes on later.

`make bench-gpuladder`, or on a GPU host without this environment (`PYTHONPATH=site python3
tests/bench/bench_gpuladder.py`): only `backends` is needed, and an interpreter that has vLLM. What
`breakeven engine probe|ladder|tune` run is run here; weights are dummies of a real shape. A stage
begins only if its time is left (`--seconds`), and the same command goes on from `--folder`.
"""

import argparse
import asyncio
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import gpumodel

from backends.engine import ladderrun, torchprobe, tunespace
from backends.engine.benchfigures import BenchSlo
from backends.engine.benchload import PromptShape
from backends.engine.environment import Environment, flavour_here
from backends.engine.ladder import LadderLoad, lines, rungs
from backends.engine.ladderrun import LadderRun
from backends.engine.torchprobe import ProbeFileError, ProbeRequest
from backends.engine.tune import describe_arm, flags_of
from backends.engine.tunerun import TuneGoal, TuneRun, tune
from backends.engine.worklog import WorkLog

STAGES = ("probe", "ladder", "tune")
START_LIMIT_S = 500.0  # max-autotune tries its kernels before the first answer


class Bench:
    """The stages' common things: where they run, what is left of their time, their results."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.ends_s = time.monotonic() + options.seconds
        self.folder = options.folder
        self.flavour = flavour_here()
        self.environment = interpreter(self.folder / "engine", options.python)
        self.model = gpumodel.make(self.folder / "models" / options.shape, options.shape)
        self.host = ladderrun.host_of(self.model, self.environment, self.flavour)
        self.found: dict[str, Any] = {"shape": options.shape, "flavour": self.flavour}

    def log(self, name: str) -> WorkLog:
        about = {"shape": self.options.shape, "flavour": self.flavour}
        return WorkLog(self.folder / f"{name}.jsonl", about)

    def say(self, words: str) -> None:
        print(f"[{self.ends_s - time.monotonic():5.0f} s left] {words}", flush=True)

    def keep(self, name: str, value: Any) -> None:
        self.found[name] = value
        self.options.out.parent.mkdir(parents=True, exist_ok=True)
        self.options.out.write_text(json.dumps(self.found, indent=1) + "\n", encoding="utf-8")


def interpreter(folder: Path, python: str) -> Environment:
    """An environment of one command: its own variables are not handed on by who starts engines."""
    made = Environment(folder)
    made.python.parent.mkdir(parents=True, exist_ok=True)
    paths = ":".join(path for path in sys.path if path.endswith("site"))
    made.python.write_text(f'#!/bin/sh\nPYTHONPATH="{paths}" exec {python} "$@"\n')
    made.python.chmod(0o755)
    return made


def probe(bench: Bench) -> None:
    log = bench.log("probe")
    if "probe" not in log.done:
        bench.say("probe")
        try:
            tokens = () if bench.host.gpu else (512,)
            request = ProbeRequest(bench.environment, bench.flavour, tokens=tokens)
            log.add("probe", torchprobe.measure(request))
        except ProbeFileError as error:
            log.add("probe", {"failed": str(error)})
    bench.keep("probe", log.done["probe"])


def ladder(bench: Bench) -> None:
    options, log = bench.options, bench.log("ladder")
    asked = LadderLoad(options.users, 512, options.output, 400, gpus=options.gpus)
    made = LadderRun(
        bench.model, bench.environment, bench.flavour, asked, bench.folder / "logs", START_LIMIT_S
    )
    all_rungs = rungs(bench.host, asked)
    for rung in all_rungs:
        wanted = rung.skipped is None and rung.name not in options.without
        if wanted and rung.name not in log.done and _time(bench, options.rung_s):
            asyncio.run(ladderrun.run_steps(made, [rung], log, bench.say))
        bench.keep("ladder", [asdict(line) for line in lines(all_rungs, log.done)])
    bench.keep("ladder flags", {name: item.get("flags") for name, item in log.done.items()})


def tuned(bench: Bench) -> None:
    options, goal = bench.options, TuneGoal("throughput", BenchSlo(tpot_s=0.05))
    space = tunespace.tuning_space(bench.host, names=options.dimensions)
    base = ("--load-format", "dummy", "--max-model-len", "4096")
    made = TuneRun(
        bench.model, bench.environment, bench.flavour, PromptShape(512, options.output), goal,
        options.at_once, bench.folder / "logs", space, base=base, start_limit_s=START_LIMIT_S,
    )  # fmt: skip
    log = bench.log("tune")
    until_s = bench.ends_s - options.rung_s
    outcome = asyncio.run(tune(made, log, bench.say, until_s=until_s))
    bench.keep(
        "tune",
        {
            **asdict(outcome), "best": dict(describe_arm(space, outcome.best)),
            "flags": flags_of(space, outcome.best), "base": base, "log": list(log.done.values()),
        },
    )  # fmt: skip


def _time(bench: Bench, needed_s: float) -> bool:
    return bench.ends_s - time.monotonic() > needed_s


def main() -> int:
    options = _options()
    bench = Bench(options)
    for name, stage in zip(STAGES, (probe, ladder, tuned), strict=True):
        if name in options.only and _time(bench, options.rung_s):
            stage(bench)
    bench.say("over")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    build = Path(__file__).resolve().parents[2] / "build"
    parser.add_argument("--shape", default="8b", choices=list(gpumodel.SHAPES))
    parser.add_argument("--python", default=sys.executable, help="which has torch and vLLM")
    parser.add_argument("--only", nargs="*", default=list(STAGES), choices=STAGES)
    parser.add_argument("--without", nargs="*", default=[], help="rungs for another call")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--rung-s", type=float, default=90.0, help="that a server may take")
    parser.add_argument("--users", type=int, default=8)
    parser.add_argument("--output", type=int, default=128)
    parser.add_argument("--gpus", type=int, default=1, help="of each rung, for a large shape")
    parser.add_argument("--at-once", type=int, default=256, help="where tuning begins")
    parser.add_argument("--dimensions", nargs="*", default=["weights", "kv", "sequences", "budget"])
    parser.add_argument("--folder", type=Path, default=build / "gpuladder")
    parser.add_argument("--out", type=Path, default=build / "bench-gpuladder.json")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
