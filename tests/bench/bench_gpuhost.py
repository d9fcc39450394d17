"""Every bench of a host with two GPUs, side by side where one is enough, within a given time.

`make bench-gpuhost ARGS="--engine FOLDER --seconds 1500"`, FOLDER being an engine environment. A
job begins when its GPUs are free and, as none overtakes another on a GPU, in the order below; what
needs both stands first and last. Whatever has ended is written to `--folder`, and the same command
goes on with the rest. The benches keep their own figures as they come, so a cut loses one at most.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import children
import gpumodel
from ours import COMMAND, ROOT

from backends.engine.worklog import WorkLog

BENCH = Path(__file__).parent
END_S = 45.0  # an engine drains, and its GPU's memory is waited for
POLL_S = 0.3
# No kernel that uses multicast between GPUs: it can put a shared host out of service.
ENVIRON = {"VLLM_ALLREDUCE_USE_SYMM_MEM": "0", "VLLM_USE_FLASHINFER_SAMPLER": "0",
           "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}  # fmt: skip
AUTOTUNE = "+ torch.compile, max-autotune"


@dataclass(frozen=True)
class Job:
    """`limit_s`: then it is ended; `least_s`: with less time left it is not begun."""

    name: str
    gpus: tuple[int, ...]
    limit_s: float
    least_s: float
    words: tuple[str, ...]


def jobs(engine: Path, folder: Path) -> tuple[Job, ...]:
    inside, model = str(engine / "bin" / "python"), str(folder / "model")

    def bench(python: str, name: str, *words: str, out: str | None = None) -> tuple[str, ...]:
        place = ("--out", str(folder / f"{out or name}.json"))
        return (python, str(BENCH / f"bench_{name}.py"), *place, *words)

    def scale(out: str, port: int, seconds: float, *stages: str) -> tuple[str, ...]:
        state = ("--state", str(folder / f"{out}-state.json"), "--folder", str(folder / "scale"))
        limits = ("--seconds", str(seconds), "--port", str(port), "--only", *stages)
        return bench(inside, "gpuscale", *state, *limits, out=out)

    ladder = ("--only", "ladder", "--folder", str(folder / "ladder"), "--rung-s", "45")
    tune = (
        "engine",
        "tune",
        model,
        "--objective",
        "throughput",
        "--slo-tpot-ms",
        "50",
        "--engine",
        str(engine),
        "--only",
        "weights,kv",
        "--at-once",
        "300",
        "--flags",
        "--max-model-len 4096",
        "--start-limit",
        "240",
        "--log",
        str(folder / "tune.jsonl"),
        "--out",
        str(folder / "tune.profile.json"),
    )
    here = sys.executable
    return (
        Job("both: 70B", (0, 1), 420, 90, scale(
            "scale2", 8321, 400, "fp8 on 2, tensors", "fp8 on 2, layers", "bf16 on 2, tensors",
            "bf16 on 2, layers")),
        Job("tune", (1,), 1200, 120, (*COMMAND, *tune)),
        Job("ladder", (0,), 480, 60, bench(
            inside, "gpuladder", *ladder, "--seconds", "470", "--without", AUTOTUNE)),
        Job("one: 70B", (0,), 190, 90, scale("scale1", 8421, 180, "fp8 on 1")),
        Job("fit", (0,), 330, 150, bench(
            here, "gpufit", "--engine", str(engine), "--files", str(folder / "fit"))),
        Job("bursts", (0,), 330, 120, scale(
            "bursts", 8431, 320, "budget default", "budget 2048", "budget 960")),
        Job("autotune", (0,), 330, 150, bench(
            inside, "gpuladder", *ladder, "--seconds", "320")),
        Job("fleet", (0, 1), 330, 150, bench(
            here, "gpufleet", "--engine", str(engine), "--logs", str(folder / "fleet-logs"))),
    )  # fmt: skip


def next_of(waiting: Sequence[Job], busy: Iterable[int], left_s: float) -> list[Job]:
    """Those to begin now: in order, and none on a GPU that an earlier one waits for."""
    taken = set(busy)
    found = []
    for job in waiting:
        if left_s >= job.least_s:
            if not taken & set(job.gpus):
                found.append(job)
            taken |= set(job.gpus)
    return found


class RunningTask:
    def __init__(self, job: Job, logs: Path, limit_s: float) -> None:
        self.job = job
        self._began_s = time.monotonic()
        self._ends_s = self._began_s + limit_s
        seen = ",".join(map(str, job.gpus))
        with (logs / f"{job.name.replace(': ', '-')}.log").open("ab") as out:
            self._process = children.start(
                job.words, cores=os.sched_getaffinity(0), orphaned=signal.SIGTERM, cwd=ROOT,
                stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                env={**os.environ, **ENVIRON, "CUDA_VISIBLE_DEVICES": seen},
            )  # fmt: skip

    def ended(self) -> dict[str, float | int] | None:
        """Its status and seconds; at its limit it is ended with all that it started."""
        if self._process.poll() is None and time.monotonic() < self._ends_s:
            return None
        self.end()
        took_s = round(time.monotonic() - self._began_s, 1)
        return {"status": self._process.returncode, "seconds": took_s}

    def end(self) -> None:
        """By way of its own ending, which gives GPUs back."""
        children.end(self._process, grace_s=END_S)


def run(wanted: Sequence[Job], log: WorkLog, logs: Path, seconds: float) -> None:
    """Until all have ended or the time has; one that did not end well is tried another time."""
    ends_s = time.monotonic() + seconds
    waiting = [job for job in wanted if log.done.get(job.name, {}).get("status") != 0]
    running: list[RunningTask] = []
    try:
        while waiting or running:
            left_s = ends_s - time.monotonic()
            for item in list(running):
                if (found := item.ended()) is not None:
                    running.remove(item)
                    log.add(item.job.name, found)
                    print(
                        f"[{left_s:5.0f} s left] {item.job.name}: {json.dumps(found)}", flush=True
                    )
            busy = [gpu for item in running for gpu in item.job.gpus]
            for job in next_of(waiting, busy, left_s):
                waiting.remove(job)
                running.append(RunningTask(job, logs, min(job.limit_s, left_s)))
                print(f"[{left_s:5.0f} s left] {job.name} begins on {job.gpus}", flush=True)
            if not running and not next_of(waiting, (), left_s):
                return
            time.sleep(POLL_S)
    finally:
        for item in running:
            item.end()


def main() -> int:
    options = _options()
    folder, logs = options.folder.resolve(), options.folder.resolve() / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    gpumodel.make(folder / "model", "8b")
    made = jobs(options.engine.resolve(), folder)
    wanted = [job for job in made if not options.only or job.name in options.only]
    log = WorkLog(folder / "host.jsonl", {"engine": str(options.engine.resolve())})
    with children.ended_by_signals():
        run(wanted, log, logs, options.seconds)
    return 0 if all(log.done.get(job.name, {}).get("status") == 0 for job in wanted) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--engine", type=Path, default=ROOT / ".breakeven" / "engine")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--only", nargs="*", help="names of jobs; default: all")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "gpuhost")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
